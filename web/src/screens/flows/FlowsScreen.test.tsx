import { fireEvent, screen, waitFor, within } from "@testing-library/react";
import { afterEach, beforeEach, expect, test } from "vitest";
import { FIRST_CHAT, FIRST_GRAPH } from "@/screens/editor/graphEdits";
import { json, problem, renderRoutes, startTestApi, type TestApi } from "@/testApi";
import { FlowScreen } from "./FlowScreen";
import { FlowsScreen } from "./FlowsScreen";

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
const FLOW = { ...SUMMARY, hash: "h2", graph: FIRST_GRAPH };
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

beforeEach(async () => {
  api = await startTestApi({
    "GET /api/flows": { flows: [SUMMARY], next_cursor: null },
    "GET /api/flows/f1": FLOW,
    "GET /api/plans/f1": PLAN,
    "GET /api/plans/f1/revisions": { plan_id: "f1", revisions: REVISIONS, next_cursor: null },
    "POST /api/plans/f1/revisions/1/restore": { ...PLAN, revision: 3 },
    "GET /api/node-types": { node_types: [START], socket_types: [] },
    "GET /api/plans": { plans: [], next_cursor: null },
    "POST /api/flows": FLOW,
    "POST /api/plans/f1/revisions/3/approve": { ...PLAN, revision: 3 },
    "POST /api/execute": { execution_id: "e1" },
  });
});

afterEach(() => api.close());

function show(at: string) {
  return renderRoutes(
    [
      { path: "/flows", Component: FlowsScreen },
      { path: "/flows/:flowId", Component: FlowScreen },
      { path: "*", element: null },
    ],
    at,
  ).router;
}

const sent = (route: string) =>
  api.requests.filter((each) => each.route === route).map(({ body }) => JSON.parse(body || "null"));

test("without flows it is said what one is; a new one begins with a start and an agent", async () => {
  api.routes["GET /api/flows"] = { flows: [], next_cursor: null };
  const router = show("/flows");
  fireEvent.click(await screen.findByRole("button", { name: "Save a plan as a flow" }));
  fireEvent.change(screen.getByLabelText("Name"), { target: { value: "Note" } });
  fireEvent.click(screen.getByRole("button", { name: "Save the flow" }));
  await waitFor(() => expect(router.state.location.pathname).toBe("/flows/f1/edit"));
  expect(sent("POST /api/flows")).toEqual([{ name: "Note", graph: FIRST_GRAPH, description: "" }]);
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
  api.routes["DELETE /api/flows/f1"] = (response) => response.writeHead(204).end();
  show("/flows");
  fireEvent.click(await screen.findByRole("button", { name: "Delete Note" }));
  const dialog = within(screen.getByRole("dialog", { name: "Delete Note?" }));
  expect(sent("DELETE /api/flows/f1")).toHaveLength(0);
  fireEvent.click(dialog.getByRole("button", { name: "Delete the flow" }));
  await waitFor(() => expect(sent("DELETE /api/flows/f1")).toHaveLength(1));
});

test("what leads to a flow is listed before it goes with it", async () => {
  api.routes["DELETE /api/flows/f1"] = problem(409, "flow-in-use", "the trigger of a node");
  show("/flows");
  fireEvent.click(await screen.findByRole("button", { name: "Delete Note" }));
  fireEvent.click(screen.getByRole("button", { name: "Delete the flow" }));
  await screen.findByText(/The trigger of a node/);
  api.routes["DELETE /api/flows/f1"] = (response) => response.writeHead(204).end();
  fireEvent.click(await screen.findByRole("button", { name: "Delete it with these" }));
  await waitFor(() =>
    expect(api.requests.some(({ url }) => url === "/api/flows/f1?force=true")).toBe(true),
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
  api.routes["GET /api/flows"] = { flows: [{ ...SUMMARY, draft }], next_cursor: null };
  show("/flows");
  await screen.findByText("Revision 3 is not approved");
  api.routes["GET /api/flows/f1"] = { ...FLOW, draft };
  show("/flows/f1");
  fireEvent.click(await screen.findByRole("button", { name: "Approve revision 3" }));
  await waitFor(() => expect(sent("POST /api/plans/f1/revisions/3/approve")).toHaveLength(1));
});

test("a file is imported", async () => {
  const router = show("/flows");
  const file = new File([JSON.stringify(FIRST_GRAPH)], "notes.json");
  fireEvent.change(await screen.findByLabelText("File to import"), { target: { files: [file] } });
  await waitFor(() => expect(router.state.location.pathname).toBe("/flows/f1"));
  expect(sent("POST /api/flows")).toEqual([{ name: "notes", description: "", graph: FIRST_GRAPH }]);
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
