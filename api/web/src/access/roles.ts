/** Roles as they are chosen and told. */
import type { Role } from "../api/types"

export const ROLES: readonly Role[] = ["viewer", "submitter", "admin"]

export function isRole(text: string): text is Role {
  return ROLES.some((role) => role === text)
}

export const MAY: Record<Role, string> = {
  viewer: "see everything but users, webhooks, secrets and the audit",
  submitter: "also submit jobs, and do as you like with your own",
  admin: "do anything",
}
