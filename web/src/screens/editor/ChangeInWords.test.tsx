import type { ServerResponse } from "node:http";
import { fireEvent, screen, waitFor, within } from "@testing-library/react";
import { useState } from "react";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { GraphDocument } from "@/api/types";
import { newNodeState, newRunState, type RunState } from "@/stream/runState";
import { problem, renderRoutes, startTestApi, type TestApi } from "@/testApi";
import { ChangeInWords } from "./ChangeInWords";

const GRAPH: GraphDocument = {
  nodes: [
    { id: "draft", type: "text", name: "Draft" },
    { id: "old", type: "text", name: "History" },
  ],
  edges: [],
};
const ADDED = {
  id: "costs",
  type: "http_tool",
  name: "Costs",
  data: { url: "https://e.example/" },
};
const PROPOSAL = {
  execution_id: "e1",
  request: "also cover costs",
  answer: "Adds the costs.",
  base: "h1",
  hash: "h2",
  graph: { nodes: [GRAPH.nodes[0], ADDED], edges: [] },
  difference: {
    title: null,
    nodes: [
      { id: "old", change: "removed", before: GRAPH.nodes[1] },
      { id: "costs", change: "added", after: ADDED },
    ],
    edges: [],
    reordered: [],
  },
  additions: [
    { kind: "host", name: "e.example", node: "costs" },
    { kind: "safeguard", name: "approval", node: "old" },
  ],
  provider: "openai",
  model: "gpt-x",
};
const ROUTE = "POST /api/executions/e1/replan";

/** Answers with events, and ends the answer after `proposal` and `problem`. */
function writing(...events: (readonly [name: string, data: object])[]) {
  return (response: ServerResponse) => {
    response.writeHead(200, { "Content-Type": "text/event-stream" });
    for (const [name, data] of events)
      response.write(`event: ${name}\ndata: ${JSON.stringify(data)}\n\n`);
    if (["proposal", "problem"].includes(events.at(-1)?.[0] ?? "")) response.end();
  };
}

let api: TestApi;
let taken: unknown[];
let change: (run: Partial<RunState>) => void;

beforeEach(async () => {
  api = await startTestApi({ "GET /api/node-types": { node_types: [], socket_types: [] } });
  taken = [];
});
afterEach(() => api.close());

function Page({ blocked }: { blocked: string | undefined }) {
  const nodes = new Map([["draft", { ...newNodeState("draft"), status: "completed" as const }]]);
  const [run, setRun] = useState<RunState>({ ...newRunState("e1"), nodes, planHash: "h1" });
  const [words, setWords] = useState("");
  change = (next) => setRun((before) => ({ ...before, ...next }));
  return (
    <ChangeInWords
      {...{ run, words, blocked }}
      graph={GRAPH}
      onWords={setWords}
      isOld={false}
      onAsk={run.endedAt === null ? () => taken.push(`ask ${words}`) : undefined}
      onTake={(proposal) => taken.push(proposal.hash)}
      onEdit={(proposal) => taken.push(`edit ${proposal.hash}`)}
      onAgain={() => {}}
      header={(action) => <header>{action}</header>}
      choice={null}
    >
      {null}
    </ChangeInWords>
  );
}

function show(blocked?: string) {
  renderRoutes([{ path: "/", element: <Page blocked={blocked} /> }]);
}

const words = () =>
  screen.getByRole<HTMLTextAreaElement>("textbox", { name: /is to be different/ });
const button = (name: string) => screen.getByRole("button", { name });
const step = (name: string) => screen.findByRole("button", { name });

function ask(text = "also cover costs") {
  fireEvent.change(words(), { target: { value: text } });
  fireEvent.click(button("Only propose it"));
}

test("the present plan stays in sight while the change is written; Cancel keeps the words", async () => {
  const held: ServerResponse[] = [];
  api.routes[ROUTE] = (response) => void held.push(response);
  show();
  expect(button("Only propose it").getAttribute("aria-disabled")).toBe("true");
  ask();
  expect(await screen.findByText("A change is being written")).toBeTruthy();
  expect(await step("Draft, completed")).toBeTruthy();
  await waitFor(() => expect(held).toHaveLength(1));
  const gone = new Promise((done) => held[0]?.on("close", done));
  fireEvent.click(button("Cancel"));
  await gone;
  expect(screen.queryByText("A change is being written")).toBeNull();
  expect(words().value).toBe("also cover costs");
  expect(words().readOnly).toBe(false);
});

test("steps appear over the plan as they are written; what is written again takes their place", async () => {
  const costs = ["node", { id: "costs", name: "Costs", type: "text" }] as const;
  const parts = [costs, ["operation", { op: "remove_node", id: "old" }] as const];
  api.routes[ROUTE] = writing(...parts);
  show();
  ask();
  expect(await step("Costs, new")).toBeTruthy();
  expect(await step("History, dropped")).toBeTruthy();
  expect(screen.getByText("A change is being written")).toBeTruthy();
  fireEvent.click(button("Cancel"));
  expect(screen.queryByRole("button", { name: "Costs, new" })).toBeNull();
  api.routes[ROUTE] = writing(...parts, ["repair", { attempt: 2, diagnostics: [] }], costs);
  fireEvent.click(button("Only propose it"));
  expect(await step("Costs, new")).toBeTruthy();
  expect(screen.queryByRole("button", { name: "History, dropped" })).toBeNull();
});

test("what goes wrong while it is written is said, and the words stay", async () => {
  const problem = { status: 422, code: "plan-invalid", detail: "No model got it right." };
  api.routes[ROUTE] = writing(["node", { id: "costs" }], ["problem", problem]);
  show();
  ask();
  expect(await screen.findByText(/No model got it right/)).toBeTruthy();
  expect(words().value).toBe("also cover costs");
});

test("a proposal is drawn over the plan, says all that it would reach, and is taken by a person", async () => {
  api.routes[ROUTE] = writing(["proposal", PROPOSAL]);
  show();
  ask();
  const proposal = within(await screen.findByRole("complementary", { name: "The proposal" }));
  expect(await step("Costs, new")).toBeTruthy();
  expect(await step("History, dropped")).toBeTruthy();
  expect(await step("Draft, completed")).toBeTruthy();
  expect(proposal.getByText("Adds the costs.")).toBeTruthy();
  expect(proposal.getByText(/would do or reach/).textContent).toContain("host e.example in costs");
  expect(proposal.getByText(/would lose/).textContent).toContain("safeguard approval in old");
  expect(proposal.getByText(/data\.url/).textContent).toContain("https://e.example/");
  expect(JSON.parse(api.requests.find(({ route }) => route === ROUTE)?.body ?? "")).toEqual({
    request: "also cover costs",
    dry_run: true,
  });
  expect(taken).toEqual([]);
  fireEvent.click(button("Change the run"));
  fireEvent.click(button("Edit it first"));
  expect(taken).toEqual(["h2", "edit h2"]);
  fireEvent.click(button("Drop it"));
  expect(screen.queryByRole("complementary")).toBeNull();
  expect(words().value).toBe("also cover costs");
});

test("another change that comes first is said, and the words are kept for the next try", async () => {
  api.routes[ROUTE] = writing(["proposal", PROPOSAL]);
  show();
  ask();
  await screen.findByRole("complementary", { name: "The proposal" });
  change({ changes: [{} as never], planHash: "h9" });
  expect((await screen.findByRole("alert")).textContent).toContain("Another change of this run");
  expect(button("Change the run").getAttribute("aria-disabled")).toBe("true");
  fireEvent.click(button("Read the run again, with your words"));
  expect(words().value).toBe("also cover costs");
  expect(screen.queryByRole("alert")).toBeNull();
  expect(button("Only propose it").getAttribute("aria-disabled")).toBeNull();
});

test("words that ask for nothing give the sentence of the model, and stay", async () => {
  const said = "the execution goes on as it is: There is nothing to cover";
  api.routes[ROUTE] = problem(422, "nothing-changed", said);
  show();
  ask();
  expect((await screen.findByRole("alert")).textContent).toContain("There is nothing to cover");
  expect(words().value).toBe("also cover costs");
  api.routes[ROUTE] = writing(["proposal", PROPOSAL]);
  fireEvent.click(button("Only propose it"));
  expect(await step("Costs, new")).toBeTruthy();
});

test("of a run that has ended the proposal is taken as a fork, and there is nothing to edit by hand", async () => {
  api.routes[ROUTE] = writing(["proposal", PROPOSAL]);
  show();
  ask();
  await screen.findByRole("complementary", { name: "The proposal" });
  expect(button("Edit it first")).toBeTruthy();
  change({ status: "completed", endedAt: "2026-01-01T00:00:09Z" });
  fireEvent.click(await screen.findByRole("button", { name: "Fork and run" }));
  expect(taken).toEqual(["h2"]);
  expect(screen.queryByRole("button", { name: "Change the run" })).toBeNull();
  expect(screen.queryByRole("button", { name: "Edit it first" })).toBeNull();
  expect(screen.getByText(/Nothing starts until you take it/)).toBeTruthy();
});

test("words change the run without a proposal, and no model is asked for one", () => {
  show();
  expect(button("Change the run").getAttribute("aria-disabled")).toBe("true");
  fireEvent.change(words(), { target: { value: "also cover costs" } });
  fireEvent.click(button("Change the run"));
  fireEvent.keyDown(words(), { key: "Enter", ctrlKey: true });
  expect(taken).toEqual(["ask also cover costs", "ask also cover costs"]);
  expect(api.requests.filter(({ route }) => route === ROUTE)).toEqual([]);
});

test("where the run cannot be changed, nothing is asked of a model", () => {
  show("The run has ended");
  ask();
  expect(button("Only propose it").getAttribute("aria-disabled")).toBe("true");
  expect(api.requests.filter(({ route }) => route === ROUTE)).toEqual([]);
});
