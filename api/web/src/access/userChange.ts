/** What may be changed of a user, and what is asked before a change that takes rights away. */
import type { User } from "../api/types"
import { ROLES } from "./roles"

export type UserChange = Partial<Pick<User, "role">> & { disabled?: boolean }

export interface Question {
  title: string
  text: string
  verb: string
}

/** Undefined where nothing is taken away: that is done at once. `me` is the name of who asks for it. */
export function questionBefore(
  { name, role }: Pick<User, "name" | "role">,
  change: UserChange,
  me: string | null,
): Question | undefined {
  if (change.disabled) {
    return {
      title: `Disable ${name}?`,
      text: "None of their tokens counts any more, until they are enabled again. Their jobs go on.",
      verb: "Disable",
    }
  }
  if (change.role === undefined || ROLES.indexOf(change.role) >= ROLES.indexOf(role)) return undefined
  const only = `what only ${role === "admin" ? "an" : "a"} ${role} may`
  return {
    title: `Make ${name} a ${change.role}?`,
    text:
      name === me
        ? `None of your tokens does ${only} any more. Another admin can give it back to you, you cannot.`
        : `None of their tokens does ${only} any more.`,
    verb: "Change the role",
  }
}
