/** What whoever uses the page may do: the page offers that and no more; the service has the last word. */
import { createContext, use } from "react"

import type { Job, Me, Role } from "../api/types"

const RANK: Record<Role, number> = { viewer: 0, submitter: 1, admin: 2 }

export class Rights {
  constructor(readonly me: Me) {}

  has(role: Role): boolean {
    return RANK[this.me.role] >= RANK[role]
  }

  /** Whether requests need a token, which no link and no download of the browser's own sends. */
  get asksForTokens(): boolean {
    return this.me.access === "tokens"
  }

  get isAdmin(): boolean {
    return this.has("admin")
  }

  get maySubmit(): boolean {
    return this.has("submitter")
  }

  /** Whether they may cancel, pause or change it: their own job, or an admin's view of any. */
  mayChange(job: Pick<Job, "user">): boolean {
    return this.isAdmin || (this.maySubmit && job.user !== null && job.user === this.me.user)
  }
}

export const RightsContext = createContext<Rights | null>(null)

export function useRights(): Rights {
  const rights = use(RightsContext)
  if (rights === null) throw new Error("useRights is for what is inside Session")
  return rights
}
