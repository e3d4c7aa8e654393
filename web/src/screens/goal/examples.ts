/** A goal to try, and the shape its plan usually has: how many steps stand in each wave. */
export interface ExampleGoal {
  kind: string;
  goal: string;
  waves: readonly number[];
}

export const EXAMPLE_GOALS: readonly ExampleGoal[] = [
  {
    kind: "Compare",
    goal: "Compare three ways to store time series data and recommend one",
    waves: [1, 3, 1],
  },
  {
    kind: "Research",
    goal: "Find what changed in HTTP caching since 2020, on one page",
    waves: [4, 1, 1],
  },
  {
    kind: "Write",
    goal: "Draft release notes from commits, then check their tone",
    waves: [1, 2, 2, 1],
  },
  {
    kind: "Decide",
    goal: "Weigh cron against a queue, and ask me before the verdict",
    waves: [3, 1, 1, 1],
  },
  {
    kind: "Sort",
    goal: "Sort these support messages by topic and answer the urgent ones",
    waves: [1, 4, 1],
  },
  {
    kind: "Plan",
    goal: "Plan a two-day workshop on observability for eight engineers",
    waves: [1, 2, 1, 2],
  },
];
