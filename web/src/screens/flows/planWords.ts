import { titleOf } from "@/api/executionSummary";
import type { PlanSummary, RevisionSummary } from "@/api/types";

/** What a plan is called: its name, or without one its title or its goal. */
export function nameOf(plan: Pick<PlanSummary, "name" | "title" | "user_prompt">): string {
  return plan.name ?? titleOf(plan);
}

/** What a plan is for: what its callers read, or its goal. */
export function purposeOf(plan: Pick<PlanSummary, "description" | "user_prompt">): string {
  return plan.description || plan.user_prompt;
}

/** The goal of its runs; that of a flow is what the flow is for. */
export function goalOf(plan: Pick<PlanSummary, "name" | "description" | "user_prompt">): string {
  return plan.name === null ? plan.user_prompt : plan.description;
}

/** Where a plan is looked at and run. */
export function planPath({ plan_id, name }: Pick<PlanSummary, "plan_id" | "name">): string {
  return name === null ? `/?plan=${plan_id}` : `/flows/${plan_id}`;
}

/** Where a plan is changed. */
export function editPath({ plan_id, name }: Pick<PlanSummary, "plan_id" | "name">): string {
  return name === null ? `/plans/${plan_id}` : `/flows/${plan_id}/edit`;
}

/** Return whether callers start an older revision, or nobody can start the newest one. */
export function isDraft(plan: PlanSummary): boolean {
  return plan.error_count > 0 || (plan.name !== null && plan.live_revision !== plan.revision);
}

/** Why callers of a flow do not start its newest revision. */
export function draftWords(draft: Pick<RevisionSummary, "revision" | "error_count">): string {
  return `Revision ${draft.revision} ${draft.error_count > 0 ? "has errors" : "is not approved"}`;
}
