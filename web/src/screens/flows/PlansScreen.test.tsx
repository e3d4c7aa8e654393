import { fireEvent, screen, waitFor, within } from "@testing-library/react";
import { afterEach, beforeEach, expect, test } from "vitest";
import { FIRST_CHAT, FIRST_GRAPH } from "@/screens/editor/graphEdits";
import { json, problem, renderRoutes, startTestApi, type TestApi } from "@/testApi";
import { listenToKeys } from "@/ui/shortcuts";
import { FlowScreen } from "./FlowScreen";
import { PlansScreen } from "./PlansScreen";

const SUMMARY = {
  plan_id: "f1",
  name: "Note",
  description: "Writes a note",
  title: "Note",
  revision: 2,
  live_revision: 2,
  draft: null,
  created_at: "2026-01-31T12:00:00Z",
  updated_at: "2026-01-31T12:00:00Z",
  node_count: 2,
};
const LISTED = {
  ...SUMMARY,
  user_prompt: "Write a note",
  published: [],
  status: "completed",
  updated_by: { kind: "operator" },
  error_count: 0,
};
const UNNAMED = {
  ...LISTED,
  plan_id: "p1",
  name: null,
  description: "",
  title: "Water",
  status: "draft",
};
const FLOW = { ...SUMMARY, published: [], hash: "h2", graph: FIRST_GRAPH };
const PLAN = { ...SUMMARY, hash: "h2", ...FIRST_GRAPH };
const REVISIONS = [2, 1].map((revision) => ({
  revision,
  note: "",
  error_count: 0,
  created_at: SUMMARY.created_at,
  node_count: 2,
}));
const START = {
  node_type: "start",
  entry: true,
  outputs: [{ name: "output", type: "any", label: "Data" }],
};
let api: TestApi;

const listed = (...plans: object[]) => ({ plans, next_cursor: null });

beforeEach(async () => {
  api = await startTestApi({
    "GET /api/plans": listed(LISTED),
    "GET /api/flows/f1": FLOW,
    "GET /api/plans/f1": PLAN,
    "GET /api/plans/f1/revisions": { plan_id: "f1", revisions: REVISIONS, next_cursor: null },
    "POST /api/plans/f1/revisions/1/restore": { ...PLAN, revision: 3 },
    "GET /api/node-types": { node_types: [START], socket_types: [] },
    "POST /api/flows": FLOW,
    "POST /api/plans/f1/revisions/3/approve": { ...PLAN, revision: 3 },
    "POST /api/execute": { execution_id: "e1" },
  });
});

afterEach(() => api.close());

function show(at: string) {
  return renderRoutes(
    [
      { path: "/flows", Component: PlansScreen },
      { path: "/flows/:flowId", Component: FlowScreen },
      { path: "*", element: null },
    ],
    at,
  ).router;
}

async function choose(name: string, item: string) {
  const more = await screen.findByRole("button", { name: `More for ${name}` });
  fireEvent.keyDown(more, { key: "Enter" });
  fireEvent.click(await screen.findByRole("menuitem", { name: item }));
}

const asked = () =>
  api.requests.filter((each) => each.route === "GET /api/plans").map(({ url }) => url);

const sent = (route: string) =>
  api.requests.filter((each) => each.route === route).map(({ body }) => JSON.parse(body || "null"));

test("without flows it is said what one is; a new one begins with a start and an agent", async () => {
  api.routes["GET /api/plans"] = listed();
  const router = show("/flows");
  fireEvent.click(await screen.findByRole("button", { name: "Save a plan as a flow" }));
  fireEvent.change(screen.getByLabelText("Name"), { target: { value: "Note" } });
  fireEvent.click(screen.getByRole("button", { name: "Save the flow" }));
  await waitFor(() => expect(router.state.location.pathname).toBe("/flows/f1/edit"));
  expect(sent("POST /api/flows")).toEqual([{ name: "Note", graph: FIRST_GRAPH, description: "" }]);
});

test("the list has what has a name, or has none, or all, and keeps that in the address", async () => {
  api.routes["GET /api/plans"] = (response, body) => {
    const isAll = !response.req.url?.includes("named");
    json(200, isAll ? listed(LISTED, UNNAMED) : listed(LISTED))(response, body);
  };
  const router = show("/flows");
  await screen.findByRole("table", { name: "Flows" });
  fireEvent.click(screen.getByRole("radio", { name: "All" }));
  await screen.findByRole("table", { name: "Plans" });
  expect(router.state.location.search).toBe("?named=all");
  const link = screen.getByRole("link", { name: "Water" });
  expect(link.getAttribute("href")).toBe("/?plan=p1");
  expect(screen.getByRole("link", { name: "Note" }).getAttribute("href")).toBe("/flows/f1");
  const row = within(link.closest("tr") as HTMLElement);
  row.getByText("Write a note");
  row.getByText("Not run yet");
  row.getByText("the operator, with the token");
  fireEvent.click(screen.getByRole("radio", { name: "Without a name" }));
  await waitFor(() => expect(router.state.location.search).toBe("?named=false"));
  await waitFor(() =>
    expect(asked()).toEqual(["/api/plans?named=true", "/api/plans", "/api/plans?named=false"]),
  );
});

test("a text is searched, first among the flows, then in all", async () => {
  api.routes["GET /api/plans"] = (response, body) => {
    const isEmpty = response.req.url?.includes("named=true&q=");
    json(200, isEmpty ? listed() : listed(UNNAMED))(response, body);
  };
  const router = show("/flows");
  const field = await screen.findByRole("searchbox");
  fireEvent.change(field, { target: { value: " water " } });
  fireEvent.click(await screen.findByRole("button", { name: "Search all plans" }));
  await screen.findByRole("link", { name: "Water" });
  expect(router.state.location.search).toBe("?q=water&named=all");
  expect(asked().slice(1)).toEqual(["/api/plans?named=true&q=water", "/api/plans?q=water"]);
});

test("a plan without a name is opened in the editor, and named, and deleted", async () => {
  api.routes["GET /api/plans"] = listed(UNNAMED);
  api.routes["DELETE /api/plans/p1"] = (response) => response.writeHead(204).end();
  const router = show("/flows?named=all");
  await choose("Water", "Save as flow");
  const dialog = within(screen.getByRole("dialog", { name: "Save as flow" }));
  expect((dialog.getByLabelText("Name") as HTMLInputElement).value).toBe("Water");
  fireEvent.click(dialog.getByRole("button", { name: "Save the flow" }));
  await waitFor(() => expect(sent("POST /api/flows")).toEqual([{ name: "Water", plan_id: "p1" }]));
  await waitFor(() => expect(asked()).toHaveLength(2));
  await choose("Water", "Delete");
  fireEvent.click(screen.getByRole("button", { name: "Delete the plan" }));
  await waitFor(() => expect(sent("DELETE /api/plans/p1")).toHaveLength(1));
  await waitFor(() => expect(asked()).toHaveLength(3));
  await waitFor(() => expect(screen.queryByRole("dialog")).toBeNull());
  await choose("Water", "Edit");
  expect(router.state.location.pathname).toBe("/plans/p1");
});

test("J and K move through the list, and more is read when it is asked for", async () => {
  api.routes["GET /api/plans"] = (response, body) => {
    const isNext = response.req.url?.includes("cursor=next");
    const page = isNext ? listed(UNNAMED) : { plans: [LISTED], next_cursor: "next" };
    json(200, page)(response, body);
  };
  const stop = listenToKeys();
  show("/flows?named=all");
  fireEvent.click(await screen.findByRole("button", { name: "Show more" }));
  const water = await screen.findByRole("link", { name: "Water" });
  const note = screen.getByRole("link", { name: "Note" });
  fireEvent.keyDown(document.body, { key: "j" });
  expect(document.activeElement).toBe(note);
  fireEvent.keyDown(note, { key: "j" });
  expect(document.activeElement).toBe(water);
  fireEvent.keyDown(water, { key: "k" });
  expect(document.activeElement).toBe(note);
  expect(screen.queryByRole("button", { name: "Show more" })).toBeNull();
  stop();
});

test("a new flow can begin with a chat", async () => {
  show("/flows");
  fireEvent.click(await screen.findByRole("button", { name: /New flow/ }));
  fireEvent.change(screen.getByLabelText("Begin with"), { target: { value: "chat" } });
  fireEvent.change(screen.getByLabelText("Name"), { target: { value: "Talk" } });
  fireEvent.click(screen.getByRole("button", { name: "Save the flow" }));
  await waitFor(() => expect(sent("POST /api/flows")).toHaveLength(1));
  expect(sent("POST /api/flows")[0].graph).toEqual(FIRST_CHAT);
});

test("a flow is deleted after a question", async () => {
  api.routes["DELETE /api/plans/f1"] = (response) => response.writeHead(204).end();
  show("/flows");
  await choose("Note", "Delete");
  const dialog = within(screen.getByRole("dialog", { name: "Delete Note?" }));
  expect(sent("DELETE /api/plans/f1")).toHaveLength(0);
  fireEvent.click(dialog.getByRole("button", { name: "Delete the flow" }));
  await waitFor(() => expect(sent("DELETE /api/plans/f1")).toHaveLength(1));
});

test("what leads to a flow is listed before it goes with it", async () => {
  api.routes["DELETE /api/plans/f1"] = problem(409, "flow-in-use", "the trigger of a node");
  show("/flows");
  await choose("Note", "Delete");
  fireEvent.click(screen.getByRole("button", { name: "Delete the flow" }));
  await screen.findByText(/The trigger of a node/);
  api.routes["DELETE /api/plans/f1"] = (response) => response.writeHead(204).end();
  fireEvent.click(await screen.findByRole("button", { name: "Delete it with these" }));
  await waitFor(() =>
    expect(api.requests.some(({ url }) => url === "/api/plans/f1?force=true")).toBe(true),
  );
});

test("a flow is run with its input", async () => {
  const router = show("/flows/f1");
  const form = within(await screen.findByRole("form", { name: "Run the flow" }));
  fireEvent.change(await form.findByLabelText("Start"), { target: { value: "water" } });
  fireEvent.click(form.getByRole("button", { name: /Run/ }));
  await waitFor(() => expect(router.state.location.pathname).toBe("/runs/e1"));
  expect(sent("POST /api/execute")).toEqual([
    {
      flow: "f1",
      revision: 2,
      inputs: { start: { output: "water" } },
      options: {},
      start: true,
    },
  ]);
});

test("an old revision is looked at and restored as a new one", async () => {
  api.routes["GET /api/flows/f1"] = (response, body) => {
    const revision = response.req.url?.endsWith("?revision=1") ? 1 : 2;
    json(200, { ...FLOW, revision })(response, body);
  };
  show("/flows/f1");
  fireEvent.click(await screen.findByRole("button", { name: /Revision 1/ }));
  await waitFor(() =>
    expect(api.requests.some(({ url }) => url === "/api/flows/f1?revision=1")).toBe(true),
  );
  fireEvent.click(await screen.findByRole("button", { name: "Restore it" }));
  await waitFor(() => expect(sent("POST /api/plans/f1/revisions/1/restore")).toHaveLength(1));
});

test("a revision that is not approved is marked, and approved by its hash", async () => {
  const draft = { ...REVISIONS[0], revision: 3, hash: "h3" };
  api.routes["GET /api/plans"] = listed({ ...LISTED, revision: 3 });
  show("/flows");
  await screen.findByText("Revision 3 is not approved");
  api.routes["GET /api/flows/f1"] = { ...FLOW, draft };
  show("/flows/f1");
  fireEvent.click(await screen.findByRole("button", { name: "Approve revision 3" }));
  await waitFor(() => expect(sent("POST /api/plans/f1/revisions/3/approve")).toHaveLength(1));
});

test("a file is imported", async () => {
  api.routes["POST /api/import"] = problem(422, "unknown-format", "this is no file that is known");
  const router = show("/flows");
  fireEvent.click(await screen.findByRole("button", { name: "Import a file" }));
  const file = new File([JSON.stringify(FIRST_GRAPH)], "notes.json");
  fireEvent.change(await screen.findByLabelText("File to import"), { target: { files: [file] } });
  await waitFor(() => expect(router.state.location.pathname).toBe("/flows/f1"));
  expect(sent("POST /api/flows")).toEqual([{ name: "notes", description: "", graph: FIRST_GRAPH }]);
});

test("a graph with errors is opened in the editor at once", async () => {
  api.routes["POST /api/import"] = problem(422, "unknown-format", "this is no file that is known");
  api.routes["POST /api/flows"] = (response, body) => {
    const isDraft = JSON.parse(body).draft === true;
    const refused = problem(422, "graph-invalid", "agent: no prompt");
    return isDraft ? json(201, FLOW)(response, body) : refused(response, body);
  };
  const router = show("/flows");
  fireEvent.click(await screen.findByRole("button", { name: "Import a file" }));
  const file = new File([JSON.stringify(FIRST_GRAPH)], "notes.json");
  fireEvent.change(await screen.findByLabelText("File to import"), { target: { files: [file] } });
  await waitFor(() => expect(router.state.location.pathname).toBe("/flows/f1/edit"));
});

test("an input with fields has a form of them, with what its step has", async () => {
  const schema = {
    type: "object",
    properties: { who: { type: "string" }, times: { type: "integer" }, tone: { type: "string" } },
    required: ["who"],
  };
  const [start, ...others] = FIRST_GRAPH.nodes;
  const data = { schema, initialInput: { tone: "kind" } };
  const graph = { ...FIRST_GRAPH, nodes: [{ ...start, data }, ...others] };
  api.routes["GET /api/flows/f1"] = { ...FLOW, graph };
  show("/flows/f1");
  const form = within(await screen.findByRole("form", { name: "Run the flow" }));
  fireEvent.change(await form.findByLabelText("Who"), { target: { value: "Ada" } });
  fireEvent.change(form.getByLabelText("Times"), { target: { value: "2" } });
  fireEvent.click(form.getByRole("button", { name: /Run/ }));
  await waitFor(() => expect(sent("POST /api/execute")).toHaveLength(1));
  expect(sent("POST /api/execute")[0].inputs).toEqual({
    start: { output: { who: "Ada", times: 2, tone: "kind" } },
  });
});

test("an input has the form of its type", async () => {
  const outputs = [
    { name: "count", type: "integer", label: "How many" },
    { name: "sure", type: "boolean", label: "Sure" },
  ];
  api.routes["GET /api/node-types"] = {
    node_types: [{ ...START, outputs }],
    socket_types: [],
  };
  const edges = ["count", "sure"].map((sourceHandle) => ({
    id: sourceHandle,
    source: "start",
    sourceHandle,
    target: "agent",
    targetHandle: sourceHandle,
    data: { channel: "flow" },
  }));
  api.routes["GET /api/flows/f1"] = { ...FLOW, graph: { ...FIRST_GRAPH, edges } };
  show("/flows/f1");
  const count = await screen.findByRole("spinbutton", { name: "Start, How many" });
  fireEvent.change(count, { target: { value: "3" } });
  const sure = screen.getByRole("combobox", { name: "Start, Sure" });
  fireEvent.change(sure, { target: { value: "true" } });
  fireEvent.click(screen.getByRole("button", { name: /Run/ }));
  await waitFor(() => expect(sent("POST /api/execute")).toHaveLength(1));
  expect(sent("POST /api/execute")[0].inputs).toEqual({ start: { count: 3, sure: true } });
});
