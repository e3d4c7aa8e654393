import { fireEvent, screen, waitFor } from "@testing-library/react";
import { afterEach, beforeEach, expect, test } from "vitest";
import { json, problem, renderRoutes, startTestApi, type TestApi } from "@/testApi";
import { EditorScreen } from "./EditorScreen";
import { FIRST_GRAPH } from "./graphEdits";

const FORECAST = {
  waves: 2,
  nodes: 2,
  width: 1,
  depth: 2,
  critical_path: ["start", "agent"],
  calls: 1,
  at_least: false,
  tokens: { low: 0, high: 0 },
  cost_usd: null,
  effects: [],
};
const CHECK = {
  valid: true,
  diagnostics: [],
  graph: FIRST_GRAPH,
  ports: {},
  forecast: FORECAST,
};
const BROKEN = {
  code: "invalid-field",
  severity: "error",
  message: "agent: no prompt",
  pointer: "/nodes/1/data",
  node: "agent",
};
const PLAN = {
  ...FIRST_GRAPH,
  plan_id: "p1",
  user_prompt: "",
  title: "A plan",
  status: "draft",
  revision: 1,
  hash: "h1",
  created_at: "2026-01-31T12:00:00Z",
  provider: null,
  model: null,
  diagnostics: [],
  fixes: [],
  questions: [],
  attempts: [],
  forecast: FORECAST,
};
let api: TestApi;

beforeEach(async () => {
  api = await startTestApi({
    "GET /api/plans/p1": PLAN,
    "GET /api/plans/p1/revisions": { plan_id: "p1", revisions: [], next_cursor: null },
    "GET /api/plans/p1/revisions/1": PLAN,
    "GET /api/plans/p1/revisions/1/diff": {
      plan_id: "p1",
      a: 1,
      b: 2,
      hash: ["h1", "h2"],
      title: null,
      nodes: [],
      edges: [],
      reordered: [],
    },
    "GET /api/node-types": { node_types: [], socket_types: [] },
    "POST /api/check": CHECK,
    "GET /api/requests": { requests: [], next_cursor: null },
  });
});

afterEach(() => api.close());

function show() {
  const run = { path: "/runs/:id", Component: () => "The run" };
  return renderRoutes([{ path: "/plans/:planId", Component: EditorScreen }, run], "/plans/p1")
    .router;
}

/** Gives the plan another title. */
function rename(to: string): void {
  fireEvent.click(screen.getByRole("button", { name: "Rename the plan" }));
  const title = screen.getByRole("textbox", { name: "Title of the plan" });
  fireEvent.change(title, { target: { value: to } });
  fireEvent.blur(title);
}

const asked = (start: string) => api.requests.filter(({ route }) => route.startsWith(start));

test("the forecast is that of the graph on the page, whatever others have stored", async () => {
  // Somebody else has left the plan with errors: the service has no forecast of what it stores.
  api.routes["PATCH /api/plans/p1"] = (response, body) => {
    const stored = { ...PLAN, revision: 2, hash: "h2", diagnostics: [BROKEN], forecast: {} };
    const [operation] = JSON.parse(body).operations;
    json(200, { ...stored, title: operation.title })(response, body);
  };
  show();
  expect(await screen.findByText("2 waves")).toBeTruthy();
  rename("Another title");
  await waitFor(() => expect(asked("PATCH ")).toHaveLength(1));
  await waitFor(() => expect(asked("GET /api/plans/p1/revisions/1/diff")).toHaveLength(1));
  expect(screen.getByText("2 waves")).toBeTruthy();
  expect(api.requests.filter(({ url }) => url.includes("forecast"))).toEqual([]);
});

test.each([
  ["invalid-field", true],
  ["unavailable-provider", false],
  ["unknown-flow", false],
])("%s cannot run; that it is a draft is %s", async (code, isDraft) => {
  api.routes["GET /api/plans/p1"] = { ...PLAN, name: "Flow", live_revision: 1, revision: 1 };
  api.routes["POST /api/check"] = { ...CHECK, diagnostics: [{ ...BROKEN, code }] };
  show();
  await screen.findByText("Fix 1 error to run");
  expect(screen.queryAllByText("Draft")).toHaveLength(isDraft ? 1 : 0);
  expect(screen.queryAllByText(/This is a draft/)).toHaveLength(isDraft ? 1 : 0);
});

test.each([
  ["a plan", { name: null, user_prompt: "Visit {{ citty }}", description: "" }],
  ["a flow", { name: "Trip", user_prompt: "Visit Rome", description: "Visit {{ citty }}" }],
])("the goal of %s is checked with its graph", async (_kind, words) => {
  const message = "the goal: there is no input citty";
  const wrong = {
    ...BROKEN,
    node: null,
    code: "template-undefined",
    pointer: "/user_prompt",
    message,
  };
  api.routes["GET /api/plans/p1"] = { ...PLAN, live_revision: 1, ...words };
  api.routes["POST /api/check"] = (response, body) => {
    const isWrong = JSON.parse(body).graph.user_prompt === "Visit {{ citty }}";
    json(200, { ...CHECK, diagnostics: isWrong ? [wrong] : [] })(response, body);
  };
  show();
  expect(await screen.findByText(/there is no input citty/)).toBeTruthy();
  expect(screen.getByText("Fix 1 error to run")).toBeTruthy();
});

test("a problem with one way out is corrected by a button, and that is undone", async () => {
  const wrong = { ...FIRST_GRAPH, nodes: [{ id: "a", type: "agnet", data: {} }], edges: [] };
  const suggestion = {
    label: "Use type agent",
    operations: [{ op: "update_node", id: "a", set: { type: "agent" } }],
  };
  const misspelt = { ...BROKEN, pointer: "/nodes/0/type", node: "a", suggestion };
  api.routes["GET /api/plans/p1"] = { ...PLAN, ...wrong };
  api.routes["POST /api/check"] = (response, body) => {
    const isWrong = JSON.parse(body).graph.nodes[0].type === "agnet";
    json(200, { ...CHECK, diagnostics: isWrong ? [misspelt] : [] })(response, body);
  };
  api.routes["PATCH /api/plans/p1"] = (response, body) => {
    const [operation] = JSON.parse(body).operations;
    const nodes = [{ id: "a", ...operation.set, data: {} }];
    json(200, { ...PLAN, ...wrong, nodes, revision: 2, hash: "h2" })(response, body);
  };
  show();
  fireEvent.click(await screen.findByRole("button", { name: "Use type agent" }));
  await screen.findByText("None");
  await waitFor(() => expect(asked("PATCH ")).toHaveLength(1));
  expect(JSON.parse(asked("PATCH ")[0]?.body ?? "").operations).toEqual(suggestion.operations);
  await waitFor(() => expect(asked("GET /api/plans/p1/revisions/1/diff")).toHaveLength(1));
  fireEvent.click(screen.getByRole("button", { name: "Undo" }));
  expect(await screen.findByRole("button", { name: "Use type agent" })).toBeTruthy();
  await waitFor(() => expect(asked("PATCH ")).toHaveLength(2));
  await screen.findByText("Saved");
});

test("a run that waits for the approval of the plan takes the plan as it was changed", async () => {
  const request = { kind: "plan-approval", actions: ["approve", "reject", "edit"], plan_id: "p1" };
  const asking = { execution_id: "e1", request_id: "r1", path: null, request, deadline: null };
  api.routes["GET /api/requests"] = {
    requests: [
      { ...asking, execution_id: "e0", request: { ...request, plan_id: "p0" } },
      { ...asking, execution_id: "e0", request: { ...request, kind: "budget" } },
      asking,
    ],
    next_cursor: null,
  };
  api.routes["GET /api/executions/e1"] = { execution_id: "e1", plan_hash: "h1" };
  api.routes["POST /api/executions/e1/requests/r1"] = { execution_id: "e2" };
  api.routes["PATCH /api/plans/p1"] = (response, body) => {
    const [operation] = JSON.parse(body).operations;
    json(200, { ...PLAN, title: operation.title, revision: 2, hash: "h2" })(response, body);
  };
  const router = show();
  const note = await screen.findByText(/A run waits for the approval of this plan\./);
  expect(note.querySelector("a")?.getAttribute("href")).toBe("/runs/e1");
  expect(note.querySelector("button")).toBeNull();
  rename("Another title");
  const take = { name: "Take revision 2 instead" };
  fireEvent.click(await screen.findByRole("button", take));
  await screen.findByText("The run");
  expect(router.state.location.pathname).toBe("/runs/e2");
  expect(JSON.parse(asked("POST /api/executions")[0]?.body ?? "")).toEqual({
    decision: "edit",
    note: "",
    value: { plan_hash: "h2" },
  });
});

test("a plan without steps begins with a start and an agent", async () => {
  api.routes["GET /api/plans/p1"] = { ...PLAN, nodes: [], edges: [] };
  api.routes["PATCH /api/plans/p1"] = { ...PLAN, revision: 2, hash: "h2" };
  show();
  fireEvent.click(await screen.findByRole("button", { name: /^Begin with/ }));
  await waitFor(() => expect(asked("PATCH ")).toHaveLength(1));
  const { operations } = JSON.parse(asked("PATCH ")[0]?.body ?? "");
  expect(operations.map(({ op }: { op: string }) => op)).toEqual([
    "add_node",
    "add_node",
    "add_edge",
  ]);
  expect(operations[0].node.type).toBe("start");
  expect(operations[1].node.type).toBe("agent");
  expect(operations[2].edge).toMatchObject({ source: "start", target: "agent" });
});

test("a change that cannot be saved stays, and is saved with the next one", async () => {
  api.routes["PATCH /api/plans/p1"] = problem(503, "overloaded", "the service is busy");
  show();
  await screen.findByText("2 waves");
  rename("Another title");
  await screen.findByText(/Not saved: The service is busy/i);
  expect(screen.getByText("Another title")).toBeTruthy();
  api.routes["PATCH /api/plans/p1"] = (response, body) => {
    const [operation] = JSON.parse(body).operations;
    json(200, { ...PLAN, title: operation.title, revision: 2, hash: "h2" })(response, body);
  };
  rename("A third title");
  await screen.findByText("Saved");
  expect(JSON.parse(asked("PATCH ").at(-1)?.body ?? "").operations).toEqual([
    { op: "set_title", title: "A third title" },
  ]);
});

test("a change is saved at once when the editor is left", async () => {
  api.routes["PATCH /api/plans/p1"] = { ...PLAN, title: "Another title", revision: 2, hash: "h2" };
  const router = show();
  await screen.findByText("2 waves");
  rename("Another title");
  expect(asked("PATCH ")).toEqual([]);
  await router.navigate("/runs/e1");
  await screen.findByText("The run");
  await waitFor(() => expect(asked("PATCH ")).toHaveLength(1));
});

test("an unknown plan says so, with a heading and a way on", async () => {
  api.routes["GET /api/plans/p1"] = problem(404, "not-found", "there is no plan 'p1'");
  show();
  expect((await screen.findByRole("alert")).textContent).toBe("There is no plan 'p1'.");
  expect(screen.getByRole("heading", { level: 1 }).textContent).toBe("Plan");
  expect(screen.getByRole("link", { name: "New goal" }).getAttribute("href")).toBe("/");
});

/** Has a plan that ran once, and was changed since so that one of its steps would run again. */
function hasRun(): void {
  api.routes["GET /api/executions"] = {
    executions: [
      { execution_id: "x1", plan_id: "p1", status: "completed", created_at: PLAN.created_at },
    ],
    next_cursor: null,
  };
  api.routes["POST /api/executions/x1/fork/preview"] = {
    reused: ["start"],
    runs: ["agent"],
    undecided: [],
  };
}

test("only what changed is not run unasked where the run is to be approved first", async () => {
  hasRun();
  show();
  await screen.findByRole("button", { name: "Run only what changed" });
  fireEvent.click(screen.getByRole("switch", { name: "Approve first" }));
  expect(screen.queryAllByRole("button", { name: "Run only what changed" })).toEqual([]);
  fireEvent.click(screen.getByRole("switch", { name: "Approve first" }));
  await screen.findByRole("button", { name: "Run only what changed" });
});

test("what a fork reuses is not asked of a stored graph before its check has found no error", async () => {
  hasRun();
  const nodes = [...FIRST_GRAPH.nodes, { ...FIRST_GRAPH.nodes[1], id: "extra", name: "Extra" }];
  const stored = { ...PLAN, nodes, title: "Another", revision: 2, hash: "h2" };
  api.routes["PATCH /api/plans/p1"] = stored;
  const checks: (() => void)[] = [];
  api.routes["POST /api/check"] = (response, body) => {
    if (!body.includes("extra")) return json(200, CHECK)(response, body);
    checks.push(() => json(200, { ...CHECK, diagnostics: [BROKEN] })(response, body));
  };
  show();
  await screen.findByRole("button", { name: "Run only what changed" });
  const before = asked("POST /api/executions/x1/fork/preview").length;
  rename("Another");
  await waitFor(() => expect(asked("PATCH ")).toHaveLength(1));
  await waitFor(() => expect(checks.length).toBeGreaterThan(0));
  for (const answer of checks) answer();
  await screen.findByText("Fix 1 error to run");
  expect(asked("POST /api/executions/x1/fork/preview")).toHaveLength(before);
});

test("a second click while the plan is saved makes no second fork", async () => {
  hasRun();
  const waiting: (() => void)[] = [];
  api.routes["PATCH /api/plans/p1"] = (response) => {
    const stored = { ...PLAN, title: "Another", revision: 2, hash: "h2" };
    waiting.push(() => json(200, stored)(response, ""));
  };
  api.routes["POST /api/executions/x1/fork"] = { execution_id: "x2", status: "starting" };
  const router = show();
  const button = await screen.findByRole("button", { name: "Run only what changed" });
  rename("Another");
  fireEvent.click(button);
  fireEvent.click(button);
  await waitFor(() => expect(waiting).toHaveLength(1));
  fireEvent.click(button);
  waiting[0]?.();
  await waitFor(() => expect(router.state.location.pathname).toBe("/runs/x2"));
  expect(api.requests.filter(({ route }) => route === "POST /api/executions/x1/fork")).toHaveLength(
    1,
  );
});
