import { fireEvent, screen } from "@testing-library/react";
import { afterEach, expect, test } from "vitest";
import type { ExecutionEvent } from "@/api/types";
import { applyEvents } from "@/stream/reducer";
import { newRunState, type ToolCall } from "@/stream/runState";
import { renderRoutes, startTestApi, type TestApi } from "@/testApi";
import { CallResult } from "./CallResult";

const BEGINNING = "the beginning";
let api: TestApi;
afterEach(() => api.close());

function callEnded(facts: Record<string, unknown>): ToolCall {
  const run = applyEvents(newRunState("e1"), [
    {
      ...{ execution_id: "e1", seq: 1, at: "2026-01-01T00:00:00Z", type: "node.event" },
      ...{ path: "lead", attempt: 2 },
      data: { event_type: "tool_call_end", data: { call_id: "c1", name: "read", ...facts } },
    } as ExecutionEvent,
  ]);
  const [call] = run.nodes.get("lead")?.calls ?? [];
  if (!call) throw new Error("no call");
  return call;
}

async function showResult(recorded: readonly Record<string, unknown>[], ordinal: number | null) {
  api = await startTestApi({
    "GET /api/executions/e1/nodes/each%5B0%5D/lead": { calls: recorded },
  });
  const call = callEnded({ result: BEGINNING, truncated: true, chars: 20_000, ordinal });
  renderRoutes([
    { path: "/", element: <CallResult executionId="e1" path="each[0]/lead" call={call} /> },
  ]);
}

test("a long result is loaded whole when that is asked for", async () => {
  await showResult(
    [
      { attempt: 1, ordinal: 3, result: "of an attempt before" },
      { attempt: 2, ordinal: 3, result: { page: "all of it" } },
    ],
    3,
  );
  expect(screen.getByText(BEGINNING)).toBeTruthy();
  expect(screen.getByText(/20,000 characters/)).toBeTruthy();
  expect(api.requests).toEqual([]);
  fireEvent.click(screen.getByRole("button", { name: "Load the whole result" }));
  expect(await screen.findByText(/"page": "all of it"/)).toBeTruthy();
  expect(api.requests.map(({ url }) => url)).toEqual([
    "/api/executions/e1/nodes/each%5B0%5D/lead?call=3",
  ]);
  expect(screen.queryByText(BEGINNING)).toBeNull();
});

test("a result whose record is gone is not shown as empty", async () => {
  await showResult([], 3);
  fireEvent.click(screen.getByRole("button", { name: "Load the whole result" }));
  expect(await screen.findByText(/no record of this call/)).toBeTruthy();
});

test("of a run whose events do not number their calls the beginning is there", async () => {
  await showResult([], null);
  expect(screen.getByText(BEGINNING)).toBeTruthy();
  expect(screen.queryByRole("button")).toBeNull();
});
