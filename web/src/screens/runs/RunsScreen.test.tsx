import { fireEvent, screen, waitFor, within } from "@testing-library/react";
import { afterEach, beforeEach, expect, test } from "vitest";
import { RunsScreen } from "@/screens/runs/RunsScreen";
import { json, problem, renderRoutes, startTestApi, type TestApi } from "@/testApi";
import { listenToKeys } from "@/ui/shortcuts";

const USAGE = {
  calls: 1,
  input_tokens: 1000,
  output_tokens: 204,
  cost_usd: 0.0004,
  estimated: false,
};

function execution(id: string, more: object = {}) {
  return {
    execution_id: id,
    plan_id: "p1",
    revision: 1,
    flow: null,
    name: null,
    tags: [],
    note: "",
    starred: false,
    planning: null,
    title: `Run ${id}`,
    user_prompt: "goal",
    status: "completed",
    timestamp: "2026-11-20T12:00:00+00:00",
    created_at: "2026-11-20T12:00:00+00:00",
    started_at: "2026-11-20T12:00:00+00:00",
    completed_at: "2026-11-20T12:00:24.900+00:00",
    digest: {
      steps: 2,
      waves: [{ completed: 2 }],
      models: ["small", "large"],
      usage: USAGE,
      parent: null,
      waitingForInput: false,
    },
    ...more,
  };
}

let api: TestApi;
let stopKeys: () => void;
const ROUTES = [
  { path: "/runs", Component: RunsScreen },
  { path: "/runs/compare", element: <p>the comparison</p> },
  { path: "/", element: <p>the goal</p> },
];

beforeEach(async () => {
  api = await startTestApi({
    "GET /api/executions": {
      executions: ["1", "2", "3"].map((id) => execution(id)),
      next_cursor: null,
    },
  });
  stopKeys = listenToKeys();
});

afterEach(async () => {
  stopKeys();
  await api.close();
});

function row(name: string): HTMLElement {
  return screen.getByRole("link", { name }).closest("tr") as HTMLElement;
}

function checked(): string[] {
  return screen
    .getAllByRole<HTMLInputElement>("checkbox")
    .filter((box) => box.checked)
    .map((box) => box.labels?.[0]?.textContent ?? "");
}

test("a row says how the run went, how long it took and what it used", async () => {
  renderRoutes(ROUTES, "/runs");
  await screen.findByRole("link", { name: "Run 1" });
  const cells = within(row("Run 1")).getAllByRole("cell");
  const words = cells.map((cell) => cell.textContent);
  expect(words.slice(1, 3)).toEqual(["Completed", "Run 1"]);
  expect(words.slice(5, 10)).toEqual(["24.9 s", "2", "1,204", "$0.0004", "small, large"]);
});

test("a run that asks a person waits for you, whatever else goes on in it", async () => {
  const digest = { ...execution("1").digest, waitingForInput: true };
  const asks = execution("1", { status: "executing", completed_at: null, digest });
  const paused = execution("2", { status: "paused", completed_at: null, digest: null });
  api.routes["GET /api/executions"] = { executions: [asks, paused], next_cursor: null };
  renderRoutes(ROUTES, "/runs");
  await screen.findByRole("link", { name: "Run 1" });
  expect(within(row("Run 1")).getByText("Waiting for you")).toBeTruthy();
  expect(within(row("Run 2")).getByText("Paused")).toBeTruthy();
});

test("without runs the way to the first one is shown", async () => {
  api.routes["GET /api/executions"] = { executions: [], next_cursor: null };
  const { router } = renderRoutes(ROUTES, "/runs");
  await screen.findByRole("heading", { name: "No runs yet." });
  expect(screen.queryByRole("search")).toBeNull();
  expect(screen.queryByRole("button", { name: "Select" })).toBeNull();
  fireEvent.click(screen.getByRole("link", { name: "New goal" }));
  await waitFor(() => expect(router.state.location.pathname).toBe("/"));
});

test("how many runs there are is said, in all and of each status", async () => {
  const counts = { total: 1128, waiting: 3, executing: 1, completed: 1103, failed: 24 };
  api.routes["GET /api/executions"] = { executions: [], next_cursor: null, counts };
  renderRoutes(ROUTES, "/runs?status=cancelled");
  await screen.findByText("1,128 runs");
  const names = screen.getAllByRole("radio").map(({ textContent }) => textContent);
  expect(names).toEqual([
    "All",
    "Running1",
    "Waiting for you3",
    "Completed1,103",
    "Failed24",
    "Cancelled0",
  ]);
  expect(screen.getByText("1,128 runs of another status fit.")).toBeTruthy();
});

test("a filter without runs can be cleared", async () => {
  api.routes["GET /api/executions"] = { executions: [], next_cursor: null };
  const { router } = renderRoutes(ROUTES, "/runs?status=failed&q=stores&a=9");
  await screen.findByRole("heading", { name: "No run fits." });
  expect(api.requests.at(-1)?.url).toBe(
    "/api/executions?digest=true&status=failed&q=stores&counts=true",
  );
  fireEvent.click(screen.getByRole("button", { name: "Clear filter" }));
  await waitFor(() => expect(router.state.location.search).toBe("?a=9"));
});

test("J, K and X walk and tick; a third tick replaces B; C compares", async () => {
  const { router } = renderRoutes(ROUTES, "/runs");
  await screen.findByRole("link", { name: "Run 1" });
  const press = (...keys: string[]) => {
    for (const key of keys) fireEvent.keyDown(document.activeElement ?? document.body, { key });
  };
  press("j", "x");
  await waitFor(() => expect(checked()).toEqual(["Compare Run 1"]));
  press("j", "x");
  await waitFor(() => expect(checked()).toEqual(["Compare Run 1", "Compare Run 2"]));
  press("j", "j", "x");
  await waitFor(() => expect(checked()).toEqual(["Compare Run 1", "Compare Run 3"]));
  press("k");
  expect(document.activeElement).toBe(screen.getByRole("link", { name: "Run 2" }));
  press("c");
  await screen.findByText("the comparison");
  expect(router.state.location.search).toBe("?a=1&b=3");
});

test("the API's error is said", async () => {
  api.routes["GET /api/executions"] = problem(500, "broken", "The store cannot be read");
  renderRoutes(ROUTES, "/runs");
  expect(await screen.findByText("The store cannot be read.")).toBeTruthy();
});

test("a run that cannot be deleted keeps the question open with the reason", async () => {
  api.routes["DELETE /api/executions/2"] = problem(409, "execution-running", "It is retried");
  renderRoutes(ROUTES, "/runs");
  const more = await screen.findByRole("button", { name: "More for Run 2" });
  more.focus();
  fireEvent.keyDown(more, { key: "Enter" });
  fireEvent.click(await screen.findByRole("menuitem", { name: "Delete" }));
  const dialog = await screen.findByRole("dialog");
  fireEvent.click(within(dialog).getByRole("button", { name: "Delete" }));
  expect(await within(dialog).findByText("It is retried.")).toBeTruthy();
});

test("older runs are read when they are asked for", async () => {
  api.routes["GET /api/executions"] = (response, body) => {
    const isOlder = api.requests.at(-1)?.url.includes("cursor=c2");
    const page = isOlder
      ? { executions: [execution("4")], next_cursor: null }
      : { executions: [execution("1")], next_cursor: "c2" };
    json(200, page)(response, body);
  };
  renderRoutes(ROUTES, "/runs");
  await screen.findByRole("link", { name: "Run 1" });
  expect(screen.queryByRole("link", { name: "Run 4" })).toBeNull();
  fireEvent.click(screen.getByRole("button", { name: "Show more" }));
  await screen.findByRole("link", { name: "Run 4" });
  expect(screen.getByRole("link", { name: "Run 1" })).toBeTruthy();
  await waitFor(() => expect(screen.queryByRole("button", { name: "Show more" })).toBeNull());
});

test("a name stands in place of the title, with tags and a star", async () => {
  const labels = { name: "Lisbon", tags: ["trip"], starred: true };
  api.routes["GET /api/executions"] = { executions: [execution("1", labels)], next_cursor: null };
  const { router } = renderRoutes(ROUTES, "/runs");
  await screen.findByRole("link", { name: "Lisbon" });
  fireEvent.click(screen.getByRole("link", { name: "trip" }));
  await waitFor(() => expect(router.state.location.search).toBe("?tag=trip"));
  await waitFor(() => expect(api.requests.at(-1)?.url).toContain("tag=trip"));
});

test("a run is named from the list", async () => {
  api.routes["PATCH /api/executions/1"] = { name: "Lisbon", tags: [], note: "", starred: false };
  renderRoutes(ROUTES, "/runs");
  const more = await screen.findByRole("button", { name: "More for Run 1" });
  more.focus();
  fireEvent.keyDown(more, { key: "Enter" });
  fireEvent.click(await screen.findByRole("menuitem", { name: "Name, tags and note" }));
  const dialog = await screen.findByRole("dialog");
  fireEvent.change(within(dialog).getByLabelText("Name"), { target: { value: "Lisbon" } });
  fireEvent.change(within(dialog).getByLabelText("Tags"), { target: { value: "trip, , may" } });
  fireEvent.click(within(dialog).getByRole("button", { name: "Save" }));
  await waitFor(() => expect(screen.queryByRole("dialog")).toBeNull());
  const sent = api.requests.find((each) => each.route === "PATCH /api/executions/1");
  const labels = { name: "Lisbon", tags: ["trip", "may"], note: "", starred: false };
  expect(JSON.parse(sent?.body ?? "")).toEqual(labels);
});

test("a run is stopped with one click", async () => {
  const running = execution("1", { status: "executing", completed_at: null });
  api.routes["GET /api/executions"] = { executions: [running], next_cursor: null };
  api.routes["POST /api/executions/1/cancel"] = {};
  renderRoutes(ROUTES, "/runs");
  fireEvent.click(await screen.findByRole("button", { name: "Stop Run 1" }));
  const routes = () => api.requests.map((each) => each.route);
  await waitFor(() => expect(routes()).toContain("POST /api/executions/1/cancel"));
});

test("selected runs are deleted after one question; one that cannot be says why", async () => {
  api.routes["DELETE /api/executions/1"] = {};
  api.routes["DELETE /api/executions/2"] = problem(409, "execution-running", "It is retried");
  renderRoutes(ROUTES, "/runs");
  await screen.findByRole("link", { name: "Run 1" });
  fireEvent.click(screen.getByRole("button", { name: "Select" }));
  fireEvent.click(screen.getByLabelText("Select Run 1"));
  fireEvent.click(screen.getByLabelText("Select Run 2"));
  const bar = screen.getByRole("region", { name: "Selected runs" });
  fireEvent.click(within(bar).getByRole("button", { name: "Delete 2" }));
  const dialog = await screen.findByRole("dialog", { name: "Delete 2 runs" });
  fireEvent.click(within(dialog).getByRole("button", { name: "Delete" }));
  expect(await within(bar).findByText("It is retried.", { exact: false })).toBeTruthy();
  expect(checked()).toEqual(["Select Run 2"]);
});

test("runs that cannot be deleted for the same reason have it said once", async () => {
  for (const id of ["1", "2"])
    api.routes[`DELETE /api/executions/${id}`] = problem(409, "execution-running", "It is retried");
  renderRoutes(ROUTES, "/runs");
  await screen.findByRole("link", { name: "Run 1" });
  fireEvent.click(screen.getByRole("button", { name: "Select" }));
  for (const name of ["Select Run 1", "Select Run 2"]) fireEvent.click(screen.getByLabelText(name));
  const bar = screen.getByRole("region", { name: "Selected runs" });
  fireEvent.click(within(bar).getByRole("button", { name: "Delete 2" }));
  const dialog = await screen.findByRole("dialog", { name: "Delete 2 runs" });
  fireEvent.click(within(dialog).getByRole("button", { name: "Delete" }));
  const reasons = await within(bar).findAllByRole("listitem");
  expect(reasons.map(({ textContent }) => textContent)).toEqual(["2 runs: It is retried."]);
  expect(checked()).toEqual(["Select Run 1", "Select Run 2"]);
});

test("the list is sorted by a column, and the other way by another click", async () => {
  const { router } = renderRoutes(ROUTES, "/runs");
  await screen.findByRole("link", { name: "Run 1" });
  fireEvent.click(await screen.findByRole("button", { name: "Took", hidden: true }));
  await waitFor(() => expect(router.state.location.search).toBe("?sort=duration"));
  fireEvent.click(await screen.findByRole("button", { name: "Took", hidden: true }));
  await waitFor(() => expect(router.state.location.search).toBe("?sort=duration&order=asc"));
  const header = await screen.findByRole("columnheader", { name: "Took", hidden: true });
  expect(header.getAttribute("aria-sort")).toBe("ascending");
});

test("the cost has that of the plan, and an unknown one is no zero", async () => {
  const free = { ...execution("2").digest, usage: { ...USAGE, calls: 0, cost_usd: null } };
  const planned = execution("1", { planning: { ...USAGE, cost_usd: 0.002 } });
  const runs = [planned, execution("2", { digest: free })];
  api.routes["GET /api/executions"] = { executions: runs, next_cursor: null };
  renderRoutes(ROUTES, "/runs");
  await screen.findByRole("link", { name: "Run 1" });
  const cost = within(row("Run 1")).getByText("$0.0024");
  expect(cost.title).toBe("$0.0004 for the run, $0.0020 for its plan, which is paid once");
  expect(within(row("Run 2")).getByText("–")).toBeTruthy();
});

test("a run that only some processes can run says that it waits for one", async () => {
  const waits_for = { capability: "local", processes: 0 };
  const waiting = execution("1", { status: "starting", completed_at: null, waits_for });
  api.routes["GET /api/executions"] = { executions: [waiting], next_cursor: null };
  renderRoutes(ROUTES, "/runs");
  const words = await screen.findByText("Waits for a worker");
  expect(words.closest("[title]")?.getAttribute("title")).toBe(
    "Waits for a worker that has a local model; there is none now",
  );
});

test("runs of a flow are told apart by their inputs; the message of a chat is its name already", async () => {
  const given = (id: string, inputs: string, more = {}) =>
    execution(id, { ...more, digest: { ...execution(id).digest, inputs } });
  const runs = [given("1", "city: Ghent"), given("2", "message: Hello", { plan_id: null })];
  api.routes["GET /api/executions"] = { executions: runs, next_cursor: null };
  renderRoutes(ROUTES, "/runs");
  await screen.findByRole("link", { name: "Run 1" });
  expect(within(row("Run 1")).getByText("city: Ghent")).toBeTruthy();
  expect(within(row("Run 2")).queryByText("message: Hello")).toBeNull();
});
