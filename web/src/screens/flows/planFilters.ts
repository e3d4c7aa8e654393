import type { PlanFilters } from "@/api/queryKeys";
import { withChangedFilters } from "@/ui/addressFilters";

export const NAMED_FILTERS = ["true", "false", "all"] as const;

type NamedFilter = (typeof NAMED_FILTERS)[number];

/** What narrows the list of stored graphs; at first it has those with a name, which are flows. */
export type ListedFilters = { named: NamedFilter; text: string };

const USUAL: ListedFilters = { named: "true", text: "" };
const NAMES = { named: "named", text: "q" } as const;

/** Returns the filters that an address names; what it does not know is left at its usual value. */
export function readFilters(params: URLSearchParams): ListedFilters {
  const named = params.get(NAMES.named);
  return {
    named: NAMED_FILTERS.find((each) => each === named) ?? USUAL.named,
    text: params.get(NAMES.text) ?? USUAL.text,
  };
}

export function withFilters(
  params: URLSearchParams,
  changed: Partial<ListedFilters>,
): URLSearchParams {
  return withChangedFilters(params, changed, USUAL, NAMES);
}

/** Returns the filters as the API takes them. */
export function apiFilters({ named, text }: ListedFilters): PlanFilters {
  return { ...(named !== "all" && { named: named === "true" }), ...(text && { q: text }) };
}
