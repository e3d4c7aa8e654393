import { fireEvent, screen, waitFor, within } from "@testing-library/react";
import { afterEach, beforeEach, expect, test } from "vitest";
import { problem, renderRoutes, startTestApi, type TestApi } from "@/testApi";
import { TriggersScreen } from "./TriggersScreen";

const TRIGGER = {
  trigger_id: "t1",
  kind: "schedule",
  plan_id: "f1",
  flow: "Nightly",
  live_revision: 1,
  revision: null,
  node_id: "at",
  enabled: true,
  problem: null,
  created_at: "2026-01-31T12:00:00Z",
  details: { next: ["2026-02-01T02:30:00+01:00", "2026-02-02T02:30:00+01:00"] },
  deliveries: [
    {
      key: "k1",
      received_at: "2026-01-31T02:30:00Z",
      outcome: "started",
      note: "1 earlier time was missed",
      execution_id: "e1",
    },
    {
      key: "k0",
      received_at: "2026-01-30T02:30:00Z",
      outcome: "skipped",
      note: "",
      execution_id: null,
    },
  ],
};
const TARGET = {
  target_id: "n1",
  plan_id: "f1",
  flow: "Nightly",
  url: "https://a.test/hook",
  secrets: ["main"],
  events: ["failed"],
  problem: "none of its secrets has a value",
  created_at: "2026-01-31T12:00:00Z",
};
const DEAD = {
  notification_id: "m1",
  target_id: "n1",
  execution_id: "e2",
  event: "failed",
  status: "dead",
  created_at: "2026-01-31T12:00:00Z",
  attempts: 11,
  next_at: null,
  error: "it answered 503",
};
const FLOW = { plan_id: "f1", name: "Nightly", graph: { nodes: [{ id: "at", type: "schedule" }] } };
let api: TestApi;

beforeEach(async () => {
  api = await startTestApi({
    "GET /api/triggers": { triggers: [TRIGGER], next_cursor: null },
    "POST /api/triggers": TRIGGER,
    "POST /api/triggers/t1/disable": { ...TRIGGER, enabled: false },
    "POST /api/triggers/t1/fire": { execution_id: "e3" },
    "DELETE /api/triggers/t1": {},
    "GET /api/notification-targets": { targets: [TARGET] },
    "GET /api/notifications": { notifications: [DEAD], next_cursor: null },
    "POST /api/notifications/m1/resend": { ...DEAD, status: "pending" },
    "GET /api/plans": { plans: [FLOW], next_cursor: null },
    "GET /api/flows/f1": FLOW,
  });
});

afterEach(() => api.close());

const show = () => renderRoutes([{ path: "*", Component: TriggersScreen }], "/triggers");
const sent = (route: string) =>
  api.requests.filter((each) => each.route === route).map(({ body }) => JSON.parse(body || "null"));

test("A trigger shows its next times and its deliveries with their runs", async () => {
  show();
  const list = await screen.findByRole("list", { name: "Triggers" });
  expect(within(list).getByText("Next times").nextSibling?.textContent).toContain(" · ");
  fireEvent.click(within(list).getByText("2 deliveries"));
  const rows = within(list).getAllByRole("listitem").slice(1);
  expect(rows.map((row) => row.textContent)).toEqual([
    expect.stringContaining("1 earlier time was missed"),
    expect.stringContaining("skipped"),
  ]);
  expect(within(list).getByText("Show the run").getAttribute("href")).toBe("/runs/e1");
});

test("A problem is told, and a trigger is switched off", async () => {
  api.routes["GET /api/triggers"] = {
    triggers: [{ ...TRIGGER, problem: "the node is gone" }],
    next_cursor: null,
  };
  show();
  expect(await screen.findByText("It starts nothing: the node is gone.")).toBeTruthy();
  fireEvent.click(screen.getByRole("switch", { name: "Enabled" }));
  await waitFor(() => expect(sent("POST /api/triggers/t1/disable")).toHaveLength(1));
});

test("A test delivery has JSON, and leads to its run", async () => {
  show();
  fireEvent.click(await screen.findByRole("button", { name: /Send a test delivery/ }));
  const field = screen.getByLabelText("What it receives, as JSON");
  fireEvent.change(field, { target: { value: "{" } });
  expect(screen.getByText("It is no JSON.")).toBeTruthy();
  fireEvent.change(field, { target: { value: '{"a": 1}' } });
  fireEvent.click(screen.getByRole("button", { name: "Start the run" }));
  const dialog = screen.getByRole("dialog");
  const link = await within(dialog).findByText("Show the run");
  expect(link.getAttribute("href")).toBe("/runs/e3");
  expect(sent("POST /api/triggers/t1/fire")).toEqual([{ value: { a: 1 } }]);
});

test("A trigger is added for a flow, and a refusal is shown", async () => {
  api.routes["POST /api/triggers"] = problem(409, "trigger-exists", "node 'at' has a trigger");
  show();
  fireEvent.click(await screen.findByRole("button", { name: "Listen for a flow" }));
  await screen.findByRole("option", { name: "Nightly" });
  fireEvent.change(screen.getByLabelText("Flow"), { target: { value: "f1" } });
  await screen.findByRole("option", { name: "at (schedule)" });
  fireEvent.change(screen.getByLabelText("Entry node"), { target: { value: "at" } });
  fireEvent.click(screen.getByRole("button", { name: "Listen" }));
  expect(await screen.findByText(/has a trigger/)).toBeTruthy();
  expect(sent("POST /api/triggers")).toEqual([{ plan_id: "f1", node_id: "at" }]);
});

test("A trigger is deleted after a question", async () => {
  show();
  fireEvent.click(await screen.findByRole("button", { name: /^Delete the schedule/ }));
  fireEvent.click(screen.getByRole("button", { name: "Delete the trigger" }));
  await waitFor(() => expect(screen.queryByRole("dialog")).toBeNull());
  expect(sent("DELETE /api/triggers/t1")).toHaveLength(1);
});

test("A message that nobody accepted is sent again", async () => {
  show();
  expect(await screen.findByText(/It gets nothing: none of its secrets/)).toBeTruthy();
  expect(await screen.findByText("it answered 503")).toBeTruthy();
  fireEvent.click(screen.getByRole("button", { name: "Send again to https://a.test/hook" }));
  await waitFor(() => expect(sent("POST /api/notifications/m1/resend")).toHaveLength(1));
});

test("Without triggers the screen says what belongs here", async () => {
  api.routes["GET /api/triggers"] = { triggers: [], next_cursor: null };
  show();
  expect(await screen.findByText("No triggers yet.")).toBeTruthy();
  expect(screen.getByRole("button", { name: "Listen for a flow" })).toBeTruthy();
});
