import { fireEvent, screen, waitFor, within } from "@testing-library/react";
import { afterEach, beforeEach, expect, test } from "vitest";
import { json, problem, renderRoutes, startTestApi, type TestApi } from "@/testApi";
import { listenToKeys } from "@/ui/shortcuts";
import { ApprovalsScreen } from "./ApprovalsScreen";

const request = (id: string, name: string, more = {}) => ({
  execution_id: id,
  request_id: "r9",
  title: `Run ${id}`,
  user_prompt: "",
  node_name: name,
  path: "check",
  since: "2026-01-31T12:00:00Z",
  timeout_s: null,
  deadline: null,
  request: {
    kind: "approval",
    prompt: `Is ${name} right?`,
    actions: ["approve", "reject"],
    form: null,
    value: "Dear all",
    editable: true,
    ...more,
  },
});
const listOf = (...requests: object[]) => ({
  requests,
  total: requests.length,
  next_cursor: null,
});
const EXECUTION = { plan_id: null, revision: null, plan_hash: null, flow: null };
let api: TestApi;
let endKeys: () => void;

beforeEach(async () => {
  endKeys = listenToKeys();
  api = await startTestApi({
    "GET /api/requests": listOf(request("e1", "First"), request("e2", "Second")),
    "GET /api/executions": { executions: [], next_cursor: null },
    "GET /api/executions/e1": EXECUTION,
    "GET /api/executions/e2": EXECUTION,
    "POST /api/executions/e1/requests/r9": { execution_id: "e1", status: "executing" },
  });
});

afterEach(() => {
  endKeys();
  return api.close();
});

function show(at = "/approvals") {
  return renderRoutes([{ path: "/approvals", Component: ApprovalsScreen }], at);
}

const detail = () => screen.findByRole("region", { name: "Request" });
const answers = () => api.requests.filter(({ route }) => route.startsWith("POST"));

test("the first request is shown, and the next one after an answer", async () => {
  show();
  const shown = within(await detail());
  fireEvent.change(shown.getByLabelText("Note"), { target: { value: "fine" } });
  fireEvent.click(await shown.findByRole("button", { name: /Approve/ }));
  await screen.findByRole("heading", { name: "Second" });
  expect(answers().map(({ body }) => JSON.parse(body))).toEqual([
    { decision: "approve", note: "fine" },
  ]);
  expect(screen.queryByRole("link", { name: /First/ })).toBeNull();
});

test("the keys of the decisions work with the focus on the request only", async () => {
  show();
  const place = await detail();
  fireEvent.keyDown(document.body, { key: "a" });
  expect(answers()).toEqual([]);
  place.focus();
  fireEvent.keyDown(place, { key: "r" });
  await waitFor(() => expect(answers()).toHaveLength(1));
  expect(JSON.parse(answers()[0]?.body ?? "")).toEqual({ decision: "reject" });
});

test("J and K choose, and the list is filtered", async () => {
  show();
  await detail();
  fireEvent.keyDown(document.body, { key: "j" });
  await screen.findByRole("heading", { name: "Second" });
  expect(document.activeElement?.textContent).toContain("Second");
  fireEvent.keyDown(document.body, { key: "k" });
  await screen.findByRole("heading", { name: "First" });
  fireEvent.change(screen.getByLabelText("Filter by run or step"), { target: { value: "x" } });
  expect(screen.getByText("No request fits.")).toBeTruthy();
});

test("an answer that came too late shows what somebody else said", async () => {
  api.routes["POST /api/executions/e1/requests/r9"] = problem(
    409,
    "request-answered",
    "request 'r9' was answered already",
  );
  api.routes["GET /api/executions/e1/nodes/check"] = {
    answers: [
      {
        request_id: "r9",
        by: "person",
        decision: "reject",
        note: "numbers first",
        at: "2026-01-31T12:01:00Z",
      },
    ],
  };
  show();
  const shown = within(await detail());
  fireEvent.click(await shown.findByRole("button", { name: /Approve/ }));
  const note = await screen.findByText(/Somebody was faster: “Reject” was given/);
  expect(note.textContent).toContain("numbers first");
  expect(shown.queryByRole("button", { name: /Approve/ })).toBeNull();
});

test("a request that somebody else answers meanwhile stays, with what was said", async () => {
  const at = "2026-01-31T12:01:00Z";
  api.routes["GET /api/executions/e1/nodes/check"] = {
    answers: [{ request_id: "r9", by: "person", decision: "approve", note: "", at }],
  };
  show();
  await screen.findByRole("heading", { name: "First" });
  api.routes["GET /api/requests"] = listOf(request("e2", "Second"));
  const note = await screen.findByText(/“Approve” was given/);
  expect(note.closest("[role=alert]")).toBeTruthy();
  expect(screen.queryByRole("link", { name: /First/ })).toBeNull();
  expect(screen.getByRole("heading", { name: "First" })).toBeTruthy();
});

test("a form that does not fit is marked at its field, and stays", async () => {
  const form = { type: "object", properties: { audience: { type: "string" } } };
  api.routes["GET /api/requests"] = listOf(request("e1", "First", { form }));
  api.routes["POST /api/executions/e1/requests/r9"] = problem(422, "invalid-form", "1 error", {
    issues: [
      {
        code: "invalid-form",
        severity: "error",
        message: "form/audience: too short",
        pointer: "/form/audience",
      },
    ],
  });
  show();
  const shown = within(await detail());
  fireEvent.change(shown.getByLabelText("Audience"), { target: { value: "x" } });
  fireEvent.click(await shown.findByRole("button", { name: /Approve/ }));
  expect(await shown.findByText("too short")).toBeTruthy();
  expect(shown.getByLabelText<HTMLInputElement>("Audience").value).toBe("x");
});

const PLAN_REQUEST = {
  ...request("e1", ""),
  path: null,
  request: {
    kind: "plan-approval",
    prompt: "Run it?",
    actions: ["approve", "reject", "edit"],
    plan_hash: "old",
    title: "Release notes",
    goal: "Write them",
    forecast: {
      waves: 1,
      nodes: 1,
      critical_path: ["a"],
      calls: 1,
      at_least: false,
      tokens: { low: 100, high: 200 },
      cost_usd: null,
    },
  },
};
const CHANGED_PLAN = {
  "GET /api/plans/p1": { plan_id: "p1", hash: "new", revision: 2, nodes: [], edges: [] },
  "GET /api/plans/p1/revisions": {
    revisions: [
      { hash: "new", revision: 2 },
      { hash: "old", revision: 1 },
    ],
    next_cursor: null,
  },
  "GET /api/plans/p1/revisions/1": {
    plan_id: "p1",
    hash: "old",
    revision: 1,
    nodes: [{ id: "a", type: "agent", name: "Read commits" }],
    edges: [],
  },
};

test("a plan that waits shows its steps and what it will take; an edited one can be taken", async () => {
  api.routes["GET /api/requests"] = listOf(PLAN_REQUEST);
  api.routes["GET /api/executions/e1"] = { ...EXECUTION, plan_id: "p1", plan_hash: "old" };
  api.routes["GET /api/plans/p1"] = json(200, {
    plan_id: "p1",
    hash: "old",
    revision: 1,
    nodes: [{ id: "a", type: "agent", name: "Read commits" }],
    edges: [],
  });
  const first = show();
  expect(await screen.findByText("Read commits")).toBeTruthy();
  expect(screen.getByText("100 to 200")).toBeTruthy();
  expect(screen.getByRole("link", { name: "Edit" }).getAttribute("href")).toBe("/plans/p1");
  first.unmount();

  Object.assign(api.routes, CHANGED_PLAN);
  show();
  expect(await screen.findByText("Read commits")).toBeTruthy();
  expect(screen.getByText(/^The plan was changed since this was asked/)).toBeTruthy();
  fireEvent.click(await screen.findByRole("button", { name: "Take revision 2 instead" }));
  await waitFor(() => expect(answers()).toHaveLength(1));
  expect(JSON.parse(answers()[0]?.body ?? "")).toEqual({
    decision: "edit",
    value: { plan_hash: "new" },
  });
});

test("an answered question about a plan shows the plan that was asked about", async () => {
  const answered = {
    at: "2026-01-31T12:00:30Z",
    by: "person",
    answer: { decision: "edit", note: "", value: { plan_hash: "new" } },
  };
  Object.assign(api.routes, CHANGED_PLAN, {
    "GET /api/requests": listOf({ ...PLAN_REQUEST, answered }),
    "GET /api/executions/e1": { ...EXECUTION, plan_id: "p1", plan_hash: "new" },
  });
  show("/approvals?tab=answered");
  expect(await screen.findByText("Read commits")).toBeTruthy();
  expect(screen.getByText("100 to 200")).toBeTruthy();
  expect(screen.queryByText(/Approve runs it as it was/)).toBeNull();
});

test("nothing waits", async () => {
  api.routes["GET /api/requests"] = listOf();
  show();
  expect(await screen.findByText("Nothing waits for you.")).toBeTruthy();
});

test("the other tab has what was answered, by whom and with which note", async () => {
  const given = { at: "2026-01-31T12:00:30Z", by: "person" };
  const answer = {
    decision: "reject",
    note: "numbers first",
    value: "Dear us",
    form: { to: "Ann" },
  };
  const late = { ...given, by: "timeout", answer: { decision: "approve", note: "" } };
  api.routes["GET /api/requests"] = (response) => {
    const isAnswered = api.requests.at(-1)?.url.includes("status=answered");
    const done = [
      { ...request("e3", "Third"), answered: { ...given, answer } },
      { ...request("e4", "Fourth"), answered: late },
    ];
    json(200, isAnswered ? listOf(...done) : listOf(request("e1", "First")))(response, "");
  };
  const { router } = show();
  await screen.findByRole("heading", { name: "First" });
  fireEvent.click(screen.getByRole("radio", { name: "Answered" }));
  await screen.findByRole("heading", { name: "Third" });
  const shown = within(await detail());
  for (const words of [
    "Is Third right?",
    "Dear us",
    "Rejected: “numbers first”",
    "Ann",
    "30.0 s",
  ]) {
    expect(shown.getByText(words)).toBeTruthy();
  }
  expect(shown.queryByRole("button", { name: /Approve/ })).toBeNull();
  fireEvent.keyDown(document.body, { key: "j" });
  await screen.findByRole("heading", { name: "Fourth" });
  expect(screen.getAllByText("Nobody answered in time, so “Approve” was taken")).toHaveLength(2);
  expect(router.state.location.search).toBe("?tab=answered&request=e4%2Fr9");
});

test("with nothing answered, the tab says so", async () => {
  api.routes["GET /api/requests"] = listOf();
  show("/approvals?tab=answered");
  await screen.findByRole("heading", { name: "Nothing was answered yet." });
});

test("a change of the plan of a run shows all that it does and reaches before it is approved", async () => {
  const asked = {
    ...request("e1", ""),
    path: null,
    request: {
      kind: "plan-change",
      prompt: "Change the plan of this run?",
      actions: ["approve", "reject"],
      change: 1,
      by: "failure",
      answer: "Asks another source.",
      hash: "new",
      difference: {
        title: null,
        nodes: [
          {
            id: "post",
            change: "added",
            after: {
              id: "post",
              name: "Post it",
              type: "fetch",
              data: { url: "https://a.example/" },
            },
          },
        ],
        edges: [],
        reordered: [],
      },
      additions: [
        { kind: "host", name: "a.example", node: "post" },
        { kind: "safeguard", name: "the approval 'ask'", node: "ask" },
      ],
      forecast: {
        waves: 2,
        nodes: 3,
        critical_path: ["a", "b"],
        calls: 2,
        tokens: { low: 100, high: 200 },
        cost_usd: { low: 0.1, high: 0.2 },
      },
    },
  };
  api.routes["GET /api/requests"] = listOf(asked);
  api.routes["GET /api/executions/e1"] = { ...EXECUTION, plan_id: null };
  show();
  const shown = within(await detail());
  expect(shown.getByRole("heading", { name: "Change the plan" })).toBeTruthy();
  expect(shown.getByText("Asks another source.")).toBeTruthy();
  expect(shown.getByText("Post it")).toBeTruthy();
  expect(shown.getByText("https://a.example/")).toBeTruthy();
  expect(shown.getByText("a.example").parentElement?.textContent).toBe("host a.example in post");
  expect(shown.getByText(/It would lose what guards the plan/)).toBeTruthy();
  expect(shown.getByText("The steps that have not begun would take:")).toBeTruthy();
  expect(shown.getByText("Model calls").nextElementSibling?.textContent).toBe("2");
  expect(shown.getByText("Cost").nextElementSibling?.textContent).toBe("$0.10 to $0.20");
  expect(shown.getByText("The run goes on with the changed plan.")).toBeTruthy();
  expect(shown.queryByRole("link", { name: "Edit" })).toBeNull();
  fireEvent.click(shown.getByRole("button", { name: /Reject/ }));
  await waitFor(() => expect(answers()).toHaveLength(1));
});
