import type { ExecutionFilters } from "@/api/queryKeys";
import { withChangedFilters } from "@/ui/addressFilters";

export const STATUS_FILTERS = [
  "all",
  "running",
  "waiting",
  "completed",
  "failed",
  "cancelled",
] as const;
export const TIME_FILTERS = ["all", "today", "week", "range"] as const;
export const SORTS = ["created", "name", "duration", "tokens", "cost"] as const;

export type StatusFilter = (typeof STATUS_FILTERS)[number];
export type TimeFilter = (typeof TIME_FILTERS)[number];

export type Sort = (typeof SORTS)[number];

export interface RunFilters {
  status: StatusFilter;
  time: TimeFilter;
  /** Days of the reader, such as 2026-01-31, both included; of the time `range`. */
  from: string;
  to: string;
  text: string;
  /** The id of a flow. */
  flow: string;
  tag: string;
  starred: "" | "yes";
  sort: Sort;
  order: "desc" | "asc";
}

const NAMES = {
  status: "status",
  time: "time",
  from: "from",
  to: "to",
  text: "q",
  flow: "flow",
  tag: "tag",
  starred: "starred",
  sort: "sort",
  order: "order",
} as const;
const NONE: RunFilters = {
  status: "all",
  time: "all",
  from: "",
  to: "",
  text: "",
  flow: "",
  tag: "",
  starred: "",
  sort: "created",
  order: "desc",
};
const DAY = /^\d{4}-\d{2}-\d{2}$/;

/** Returns the filters that an address names; what it does not know is no filter. */
export function readFilters(params: URLSearchParams): RunFilters {
  const status = params.get(NAMES.status);
  const time = params.get(NAMES.time);
  return {
    status: STATUS_FILTERS.find((each) => each === status) ?? NONE.status,
    time: TIME_FILTERS.find((each) => each === time) ?? NONE.time,
    from: readDay(params.get(NAMES.from)),
    to: readDay(params.get(NAMES.to)),
    text: params.get(NAMES.text) ?? NONE.text,
    flow: params.get(NAMES.flow) ?? NONE.flow,
    tag: params.get(NAMES.tag) ?? NONE.tag,
    starred: params.get(NAMES.starred) === "yes" ? "yes" : "",
    sort: SORTS.find((each) => each === params.get(NAMES.sort)) ?? NONE.sort,
    order: params.get(NAMES.order) === "asc" ? "asc" : "desc",
  };
}

function readDay(value: string | null): string {
  return value !== null && DAY.test(value) && !Number.isNaN(Date.parse(value)) ? value : "";
}

export function withFilters(
  params: URLSearchParams,
  changed: Partial<RunFilters>,
): URLSearchParams {
  return withChangedFilters(params, changed, NONE, NAMES);
}

export function withoutFilters(params: URLSearchParams): URLSearchParams {
  const { sort: _sort, order: _order, ...none } = NONE;
  return withFilters(params, none);
}

export function hasFilters(filters: RunFilters): boolean {
  return (Object.keys(NONE) as (keyof RunFilters)[]).some(
    (name) => name !== "sort" && name !== "order" && filters[name] !== NONE[name],
  );
}

/** Returns the filters as the API takes them; days are those of the reader. */
export function apiFilters(filters: RunFilters, now: Date): ExecutionFilters {
  const { status, text, flow, tag, starred, sort, order } = filters;
  const [since, until] = timesOf(filters, now);
  return {
    ...(status === "waiting" && { waiting: true }),
    ...(status === "running" && { status: "executing" as const }),
    ...(status !== "all" && status !== "waiting" && status !== "running" && { status }),
    ...(since && { since: since.toISOString() }),
    ...(until && { until: until.toISOString() }),
    ...(text && { q: text }),
    ...(flow && { plan_id: flow }),
    ...(tag && { tag }),
    ...(starred && { starred: true }),
    ...(sort !== NONE.sort && { sort }),
    ...(order !== NONE.order && { order }),
  };
}

/** Returns from when on, and before when, a run was made. */
function timesOf({ time, from, to }: RunFilters, now: Date): [Date | null, Date | null] {
  if (time === "range") return [from ? dayOf(from, 0) : null, to ? dayOf(to, 1) : null];
  if (time === "all") return [null, null];
  const daysBefore = time === "today" ? 0 : 6;
  return [new Date(now.getFullYear(), now.getMonth(), now.getDate() - daysBefore), null];
}

/** Returns the beginning of a day of the reader, or of one so many days later. */
function dayOf(day: string, later: number): Date {
  const [year = 0, month = 1, date = 1] = day.split("-").map(Number);
  return new Date(year, month - 1, date + later);
}
