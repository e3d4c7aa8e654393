import type { PlanFilters } from "@/api/queryKeys";

export const NAMED_FILTERS = ["true", "false", "all"] as const;

type NamedFilter = (typeof NAMED_FILTERS)[number];

/** What narrows the list of stored graphs; at first it has those with a name, which are flows. */
export type ListedPlans = { named: NamedFilter; text: string };

const USUAL: ListedPlans = { named: "true", text: "" };
const NAMES = { named: "named", text: "q" } as const;

/** Returns the filters that an address names; what it does not know is left at its usual value. */
export function readFilters(params: URLSearchParams): ListedPlans {
  const named = params.get(NAMES.named);
  return {
    named: NAMED_FILTERS.find((each) => each === named) ?? USUAL.named,
    text: params.get(NAMES.text) ?? USUAL.text,
  };
}

/** Returns an address's parameters with some filters changed; all others stay. */
export function withFilters(
  params: URLSearchParams,
  changed: Partial<ListedPlans>,
): URLSearchParams {
  const next = new URLSearchParams(params);
  for (const name of ["named", "text"] as const) {
    const value = changed[name];
    if (value === undefined) continue;
    if (value === USUAL[name]) next.delete(NAMES[name]);
    else next.set(NAMES[name], value);
  }
  return next;
}

/** Returns the filters as the API takes them. */
export function apiFilters({ named, text }: ListedPlans): PlanFilters {
  return { ...(named !== "all" && { named: named === "true" }), ...(text && { q: text }) };
}
