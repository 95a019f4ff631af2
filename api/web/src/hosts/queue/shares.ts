/** Users and labels with what they hold, may hold and have used: quotas and use as rows of one table. */
import type { components } from "../../api/schema"

type Quotas = components["schemas"]["Quotas"]

interface ShareRow {
  name: string
  /** Null for `*`, which is nobody's own. */
  holds: number | null
  /** Null for no limit. */
  most: number | null
  share: number
  used_s: number | null
}

/**
 * Labels first, then what holds for every other user, then users by what they hold and have used, with their own quota
 * or else that of every other user.
 */
export function rowsOf({ items, users }: Quotas): ShareRow[] {
  const forUsers = new Map(items.filter(({ kind }) => kind === "user").map((quota) => [quota.subject, quota]))
  const anyOther = forUsers.get("*")
  const rows: ShareRow[] = items
    .filter(({ kind }) => kind === "label")
    .map(({ subject, max_devices, share, use }) => ({
      name: `label ${subject}`,
      holds: use?.held_devices ?? null,
      most: max_devices,
      share,
      used_s: use?.recent_device_s ?? null,
    }))
  if (anyOther) {
    const { max_devices, share } = anyOther
    rows.push({ name: "each other user", holds: null, most: max_devices, share, used_s: null })
  }
  const known = new Set(users.map(({ user }) => user))
  const all = [
    ...users,
    // Who has a quota and has used nothing yet.
    ...[...forUsers.keys()]
      .filter((user) => user !== "*" && !known.has(user))
      .map((user) => ({ user, held_devices: 0, recent_device_s: 0 })),
  ]
  all.sort((one, other) => other.held_devices - one.held_devices || other.recent_device_s - one.recent_device_s)
  for (const { user, held_devices, recent_device_s } of all) {
    const quota = (user === null ? undefined : forUsers.get(user)) ?? anyOther
    rows.push({
      name: user ?? "jobs without a user",
      holds: held_devices,
      most: quota?.max_devices ?? null,
      share: quota?.share ?? 1,
      used_s: recent_device_s,
    })
  }
  return rows
}
