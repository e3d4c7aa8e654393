import { expect, test } from "vitest";
import type { ExecutionSummary } from "@/api/types";
import { summaryWords } from "./FlowRuns";

const run = (status: string, seconds: number | null) =>
  ({
    status,
    started_at: seconds === null ? null : "2026-01-01T00:00:00Z",
    completed_at:
      seconds === null ? null : new Date(Date.UTC(2026, 0, 1, 0, 0, seconds)).toISOString(),
  }) as ExecutionSummary;

test("the success rate is that of ended runs, the median that of completed ones", () => {
  expect(summaryWords([run("executing", null)])).toBe("None has ended yet.");
  expect(summaryWords([run("failed", 50)])).toBe("0 of 1 run succeeded.");
  const runs = [run("completed", 3), run("completed", 1), run("completed", 9), run("failed", 99)];
  expect(summaryWords(runs)).toBe("3 of 4 runs succeeded; the median takes 3.0 s.");
});
