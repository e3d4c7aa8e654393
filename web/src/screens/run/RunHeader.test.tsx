import { fireEvent, screen, waitFor } from "@testing-library/react";
import { afterEach, expect, test } from "vitest";
import type { ExecutionEvent } from "@/api/types";
import { goldenRuns } from "@/stream/goldenRuns";
import { applyEvents } from "@/stream/reducer";
import { newRunState, type RunState } from "@/stream/runState";
import { renderRoutes, startTestApi, type TestApi } from "@/testApi";
import { RunHeader } from "./RunHeader";
import { changeWords } from "./runSummary";

let api: TestApi;
afterEach(() => api.close());

async function show(execution: Record<string, unknown>, state: Partial<RunState> = {}) {
  const labels = { name: null, tags: [], note: "", starred: false, planning: null };
  api = await startTestApi({ "GET /api/executions/e1": { ...labels, ...execution } });
  const run = { ...newRunState("e1"), title: "Weekly report", ...state };
  const header = <RunHeader run={run} isInterrupted={false} now={0} actions={<p>Actions</p>} />;
  renderRoutes([{ path: "/", element: header }]);
}

test("a run leads to its trace, without telling that page where it was opened", async () => {
  await show({ trace_url: "https://t.example/0af7" });
  const link = await screen.findByRole("link", { name: "trace" });
  expect(link.getAttribute("href")).toBe("https://t.example/0af7");
  expect(link.getAttribute("rel")).toBe("noreferrer noopener");
});

test("a run without a known page of its trace has no such link", async () => {
  await show({});
  expect(await screen.findByRole("heading", { name: "Weekly report" })).toBeTruthy();
  await expect.poll(() => api.requests.length).toBe(1);
  expect(screen.queryByRole("link")).toBeNull();
});

test("a run is called by its name, and starred in its header", async () => {
  await show({ name: "Lisbon", tags: ["trip"] });
  expect(await screen.findByRole("heading", { name: "Lisbon" })).toBeTruthy();
  expect(screen.getByText("trip")).toBeTruthy();
  api.routes["PATCH /api/executions/e1"] = {};
  fireEvent.click(screen.getByRole("button", { name: "Star this run" }));
  await waitFor(() =>
    expect(api.requests.find((each) => each.route.startsWith("PATCH"))?.body).toBe(
      '{"starred":true}',
    ),
  );
});

test("the cost of the plan is in the cost of the run, and said apart", async () => {
  await show({ planning: { calls: 1, input_tokens: 5, output_tokens: 1, cost_usd: 0.02 } });
  expect(await screen.findByText("$0.0200, of which $0.0200 planning")).toBeTruthy();
});

test("planning that costs next to nothing is not told apart", async () => {
  await show({ planning: { calls: 1, input_tokens: 5, output_tokens: 1, cost_usd: 0.000_02 } });
  expect(await screen.findByText("under $0.0001 with planning")).toBeTruthy();
});

test("a run that only some processes can run says what it waits for, until it goes on", async () => {
  const waits_for = { capability: "local", processes: 0 };
  await show({ waits_for, last_seq: 3 }, { status: "executing", lastSeq: 3 });
  const words = "Waits for a worker that has a local model; there is none now";
  expect(await screen.findByText(words)).toBeTruthy();
});

test("what a run waited for before its last event is no longer said", async () => {
  const waits_for = { capability: "local", processes: 1 };
  await show({ waits_for, last_seq: 3, name: "Lisbon" }, { status: "executing", lastSeq: 4 });
  expect(await screen.findByRole("heading", { name: "Lisbon" })).toBeTruthy();
  expect(screen.queryByText(/Waits for/)).toBeNull();
});

test("a run that failed and delivered results says both", async () => {
  await show({}, { status: "failed" });
  api.routes["GET /api/executions/e1/result"] = { outcome: "partial" };
  expect(await screen.findByText("Failed in part")).toBeTruthy();
});

test("a run says that a model writes a change of its plan, and why, until it is made", async () => {
  const recorded = goldenRuns().find(({ name }) => name.startsWith("changes_after_failures"));
  const events = recorded?.events ?? [];
  const until = (type: ExecutionEvent["type"]) => {
    const index = events.findIndex((event) => event.type === type);
    return applyEvents(newRunState("e1"), events.slice(0, index + 1));
  };
  await show({}, until("plan.requested"));
  const words = "A model writes a change of the plan, as f failed; no step starts meanwhile";
  expect(await screen.findByText(words)).toBeTruthy();
  expect(changeWords(until("plan.revised"))).toBeUndefined();
});
