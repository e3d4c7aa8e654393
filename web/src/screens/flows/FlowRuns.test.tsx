import { screen } from "@testing-library/react";
import { expect, test } from "vitest";
import type { ExecutionSummary } from "@/api/types";
import { renderRoutes, startTestApi } from "@/testApi";
import { FlowRuns, summaryWords } from "./FlowRuns";

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

test("runs of a flow are told apart by their inputs, and by what they left open", async () => {
  const listed = (id: string, inputs: string, outcome: string | null) => ({
    ...run("failed", 3),
    execution_id: id,
    revision: 1,
    outcome,
    created_at: "2026-01-01T00:00:00Z",
    title: "Trip",
    digest: { inputs, waitingForInput: false },
  });
  const executions = [listed("e1", "city: Lisbon", "partial"), listed("e2", "city: Porto", null)];
  const api = await startTestApi({ "GET /api/executions": { executions, next_cursor: null } });
  renderRoutes([{ path: "/", element: <FlowRuns planId="p1" /> }]);
  const lisbon = await screen.findByRole("link", { name: /city: Lisbon/ });
  expect(lisbon.textContent).toContain("Failed in part");
  expect(screen.getByRole("link", { name: /city: Porto/ }).textContent).toMatch(/^Failedrevision/);
  await api.close();
});
