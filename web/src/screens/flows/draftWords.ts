import type { RevisionSummary } from "@/api/types";

/** Why callers of a flow do not start its newest revision. */
export function draftWords(draft: Pick<RevisionSummary, "revision" | "error_count">): string {
  return `Revision ${draft.revision} ${draft.error_count > 0 ? "has errors" : "is not approved"}`;
}
