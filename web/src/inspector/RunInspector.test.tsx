import { fireEvent, screen, within } from "@testing-library/react";
import { afterEach, expect, test } from "vitest";
import { newNodeState, newRunState, type RunState } from "@/stream/runState";
import { renderRoutes, startTestApi, type TestApi } from "@/testApi";
import { RunInspector } from "./RunInspector";

let api: TestApi;
afterEach(() => api.close());

async function showJson(lastSeq: number) {
  api = await startTestApi({ "GET /api/executions/e1/document": { execution_id: "e1" } });
  const run = { ...newRunState("e1"), lastSeq };
  const inspector = (
    <RunInspector run={run} tab="json" onTab={() => {}} onSelect={() => {}} onRead={() => {}} />
  );
  renderRoutes([{ path: "/", element: inspector }]);
}

test("the stored JSON of a run of modest size is there with its tab", async () => {
  await showJson(40);
  expect(await screen.findByText(/"execution_id": "e1"/)).toBeTruthy();
});

test("the stored JSON of a large run is loaded when that is asked for", async () => {
  await showJson(40_000);
  const load = await screen.findByRole("button", { name: "Load the whole document" });
  expect(screen.getByText(/40,000 events/)).toBeTruthy();
  expect(api.requests).toEqual([]);
  fireEvent.click(load);
  expect(await screen.findByText(/"execution_id": "e1"/)).toBeTruthy();
});

function showResult(nodes: string[], node_results: Record<string, string>) {
  const run: RunState = {
    ...newRunState("e1"),
    status: "completed",
    endedAt: "2026-01-01T00:00:00Z",
  };
  const inspector = (
    <RunInspector run={run} tab="result" onTab={() => {}} onSelect={() => {}} onRead={() => {}} />
  );
  return startTestApi({
    "GET /api/executions/e1/result": { result: { nodes, value: null }, node_results },
  }).then((started) => {
    api = started;
    renderRoutes([{ path: "/", element: inspector }]);
  });
}

test("each of the last steps shows what it delivered, and no other step", async () => {
  await showResult(["a", "c"], { a: "Good day", b: "Not shown", c: "Good night" });
  expect(await screen.findByText("Good day")).toBeTruthy();
  expect(screen.getByText("Good night")).toBeTruthy();
  expect(screen.queryByText("Not shown")).toBeNull();
});

test("a run that failed shows where, with the traceback of the step", async () => {
  api = await startTestApi({
    "GET /api/executions/e1/result": { result: { nodes: [], value: null }, node_results: {} },
    "GET /api/executions/e1/nodes/pay": { traceback: "Traceback:\n  in pay" },
  });
  const error = { code: "node-failed", message: "no shop", hint: null, node: "pay" };
  const pay = { ...newNodeState("pay"), status: "failed" as const, attempt: 2 };
  const run: RunState = {
    ...newRunState("e1"),
    status: "failed",
    endedAt: "2026-01-01T00:00:00Z",
    error,
    failures: ["pay"],
    nodes: new Map([["pay", pay]]),
  };
  const inspector = (
    <RunInspector run={run} tab="result" onTab={() => {}} onSelect={() => {}} onRead={() => {}} />
  );
  renderRoutes([{ path: "/", element: inspector }]);
  expect(await screen.findByText(/in pay/)).toBeTruthy();
  expect(screen.getByText("step pay")).toBeTruthy();
  expect(screen.getByText("attempt 2")).toBeTruthy();
});

const FAILED = { code: "node-failed", message: "no shop", hint: null, node: "pay" };

async function showPartial(missing: object[], onSelect: (path: string) => void = () => {}) {
  api = await startTestApi({
    "GET /api/executions/e1/result": {
      outcome: "partial",
      missing,
      result: { nodes: ["tour"], value: "Lisbon" },
      node_results: { tour: "Lisbon" },
    },
    "GET /api/executions/e1/nodes/pay": {},
  });
  const nodes = ["tour", "pay", "trip"].map((path) => [path, newNodeState(path)] as const);
  const run: RunState = {
    ...newRunState("e1"),
    status: "failed",
    endedAt: "2026-01-01T00:00:00Z",
    error: FAILED,
    failures: ["pay"],
    nodes: new Map(nodes),
  };
  const inspector = (
    <RunInspector run={run} tab="result" onTab={() => {}} onSelect={onSelect} onRead={() => {}} />
  );
  renderRoutes([{ path: "/", element: inspector }]);
  return await screen.findByText("Lisbon");
}

test("what a failed run delivered comes first, then what is missing and why, then the failure", async () => {
  const { code, message } = FAILED;
  const missing = (path: string, status: string, node: string | null) => ({
    path,
    name: path,
    status,
    cause: { node, error: { code, message } },
  });
  const chosen: string[] = [];
  const delivered = await showPartial(
    [
      missing("pay", "failed", "pay"),
      missing("trip", "blocked", "pay"),
      missing("x", "pending", null),
    ],
    (path) => chosen.push(path),
  );
  const list = screen.getByRole("region", { name: "Missing" });
  expect([...list.querySelectorAll("li")].map((each) => each.textContent)).toEqual([
    "pay failed",
    "trip, because pay failed",
    "x did not run: no shop",
  ]);
  const failure = screen.getByText("step pay");
  const after = Node.DOCUMENT_POSITION_FOLLOWING;
  expect(delivered.compareDocumentPosition(list) & after).toBeTruthy();
  expect(list.compareDocumentPosition(failure) & after).toBeTruthy();
  fireEvent.click(within(list).getByRole("button", { name: "trip" }));
  expect(chosen).toEqual(["trip"]);
});

test("a failed run of which every result is there says so", async () => {
  await showPartial([]);
  expect(screen.getByText(/All results are there/)).toBeTruthy();
});

test("a run whose last steps delivered nothing says so", async () => {
  await showResult([], { b: "Not shown" });
  expect(await screen.findByText("The run gave nothing.")).toBeTruthy();
});

test("what a step had cost that was cut off in its first call is not known, and no zero", async () => {
  api = await startTestApi({ "GET /api/executions/e1": { planning: null } });
  const text = { tail: "Lisbon has", offset: 0, length: 10 };
  const cut = { ...newNodeState("write"), status: "cancelled" as const, text };
  const run: RunState = {
    ...newRunState("e1"),
    status: "cancelled",
    nodes: new Map([["write", cut]]),
  };
  const inspector = (
    <RunInspector run={run} tab="cost" onTab={() => {}} onSelect={() => {}} onRead={() => {}} />
  );
  renderRoutes([{ path: "/", element: inspector }]);
  expect(await screen.findByText("–, and what was cut off: not known")).toBeTruthy();
  const row = screen.getByRole("list", { name: "Cost by step" });
  expect(row.textContent).toBe("cut offwritenot known");
  expect(screen.queryByText(/\$0/)).toBeNull();
});

test("what a dropped step has cost is beside the costs of the others, and in their sum", async () => {
  api = await startTestApi({ "GET /api/executions/e1": { planning: null } });
  const usage = (cost_usd: number) => {
    return { calls: 1, input_tokens: 5, output_tokens: 1, cost_usd, estimated: false };
  };
  const kept = { ...newNodeState("a"), name: "Draft", usage: usage(1) };
  const dropped = { ...newNodeState("b"), name: "Prices", usage: usage(2) };
  const run = {
    ...newRunState("e1"),
    usage: { ...usage(3), calls: 2 },
    nodes: new Map([["a", kept]]),
    changes: [{ dropped: [dropped] } as unknown as RunState["changes"][number]],
  };
  const inspector = (
    <RunInspector run={run} tab="cost" onTab={() => {}} onSelect={() => {}} onRead={() => {}} />
  );
  const { queries } = renderRoutes([{ path: "/", element: inspector }]);
  const steps = within(await screen.findByRole("list", { name: "Cost by step" }));
  expect(steps.getAllByRole("listitem").map(({ textContent }) => textContent)).toEqual([
    "1 callDraft6 tokens, $1.00",
    "1 callPrices, dropped6 tokens, $2.00",
  ]);
  expect(steps.getAllByRole("button")).toHaveLength(1);
  expect(screen.getByText("$3.00")).toBeTruthy();
  await expect.poll(() => queries.isFetching()).toBe(0);
});
