import type { ServerResponse } from "node:http";
import { fireEvent, render, screen, waitFor, within } from "@testing-library/react";
import { afterEach, beforeEach, expect, test } from "vitest";
import { GoalScreen } from "@/screens/goal/GoalScreen";
import { useGoalDraft } from "@/screens/goal/goalDraft";
import { stopPlan } from "@/screens/goal/planWriting";
import { problem, renderRoutes, startTestApi, type TestApi } from "@/testApi";
import { listenToKeys } from "@/ui/shortcuts";
import { Toaster } from "@/ui/Toaster";
import { TooltipProvider } from "@/ui/Tooltip";

const OPENAI = {
  name: "openai",
  kind: "openai",
  available: true,
  reason: "OPENAI_API_KEY is set",
  how_to_enable: "",
  models: ["gpt-small", "gpt-large"],
  default_model: "gpt-small",
  open_models: true,
  download: null,
};
const LOCAL = {
  name: "local",
  kind: "local",
  available: false,
  reason: "the model is not downloaded yet",
  how_to_enable: "planwave model pull",
  models: ["qwen"],
  default_model: "qwen",
  open_models: false,
  download: null,
};
const FORECAST = {
  waves: 2,
  nodes: 2,
  width: 1,
  depth: 2,
  critical_path: ["ways", "pick"],
  calls: 2,
  at_least: false,
  tokens: { low: 1873, high: 3422 },
  cost_usd: { low: 0.0004, high: 0.0004 },
  effects: [],
};
const PLAN = {
  plan_id: "p1",
  user_prompt: "Compare three stores",
  title: "Which store",
  status: "draft",
  revision: 1,
  hash: "h",
  created_at: "2026-11-23T12:00:00+00:00",
  provider: "openai",
  model: "gpt-small",
  nodes: [
    { id: "ways", type: "agent", name: "Name stores", data: { userPrompt: "Name three." } },
    { id: "pick", type: "agent", name: "Pick one", description: "Recommend one." },
  ],
  edges: [
    {
      id: "e1",
      source: "ways",
      sourceHandle: "output",
      target: "pick",
      targetHandle: "input",
      data: { channel: "flow" },
    },
  ],
  diagnostics: [
    {
      code: "unused",
      severity: "warning",
      message: "its result is not used",
      pointer: "/nodes/1",
      node: "pick",
    },
  ],
  fixes: ["a dependency named twice was kept once"],
  questions: [],
  attempts: [],
  forecast: FORECAST,
};

let api: TestApi;
let stream: ServerResponse | null;
let endKeys: () => void;
const ROUTES = [
  { path: "/", Component: GoalScreen },
  { path: "/runs/:id", element: <p>the run</p> },
  { path: "/settings", element: <p>settings</p> },
];

beforeEach(async () => {
  stream = null;
  endKeys = listenToKeys();
  useGoalDraft.setState({
    prompt: "",
    provider: null,
    model: null,
    options: {},
    approveFirst: false,
    runWhenWritten: false,
  });
  api = await startTestApi({
    "GET /api/providers": {
      providers: ["openai"],
      default_models: {},
      models: {},
      details: [OPENAI, LOCAL],
    },
    "GET /api/executions": { executions: [], next_cursor: null },
    "GET /api/plans/p1": PLAN,
    "POST /api/plan": (response) => {
      response.writeHead(200, { "Content-Type": "text/event-stream" });
      stream = response;
      send("delta", { text: "{", reasoning: false });
    },
    "POST /api/execute": { execution_id: "x1", plan_id: "p1", status: "starting", position: null },
  });
});

afterEach(async () => {
  endKeys();
  stopPlan();
  await api.close();
});

function send(event: string, data: object): void {
  stream?.write(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
}

/** Sends the goal, and waits until the service writes its plan. */
async function askForPlan(): Promise<void> {
  await ask();
  await waitFor(() => expect(stream).not.toBeNull());
  await screen.findByText("Writing the plan");
}

async function ask(): Promise<void> {
  const prompt = await screen.findByRole("textbox", { name: "Goal" });
  fireEvent.change(prompt, { target: { value: PLAN.user_prompt } });
  fireEvent.keyDown(prompt, { key: "Enter", ctrlKey: true });
}

test("an example goal is written into the prompt, and an empty prompt is not sent", async () => {
  renderRoutes(ROUTES);
  fireEvent.click(await screen.findByRole("button", { name: "Make a plan" }));
  expect(screen.getByText("Say first what should get done.")).toBeTruthy();
  fireEvent.click(screen.getByRole("button", { name: /two-day workshop/ }));
  const prompt = screen.getByRole("textbox", { name: "Goal" }) as HTMLTextAreaElement;
  expect(prompt.value).toContain("two-day workshop");
  expect(api.requests.some(({ route }) => route === "POST /api/plan")).toBe(false);
});

test("Ctrl Enter makes the plan with the focus on an option too", async () => {
  useGoalDraft.setState({ prompt: PLAN.user_prompt });
  renderRoutes(ROUTES);
  const option = await screen.findByRole("switch", { name: "Approve first" });
  fireEvent.keyDown(option, { key: "Enter", ctrlKey: true });
  await screen.findByText("Writing the plan");
});

test("a plan that was just written is shown without being loaded", async () => {
  api.routes["GET /api/plans/p1"] = () => {}; // never answers
  renderRoutes(ROUTES);
  await askForPlan();
  send("plan", PLAN);
  await screen.findByText("Written");
});

test("the chosen model plans; a provider that cannot be used says why", async () => {
  renderRoutes(ROUTES);
  fireEvent.click(await screen.findByRole("button", { name: /gpt-small/ }));
  const list = await screen.findByRole("dialog", { name: "Model" });
  expect(within(list).getByText(/not downloaded yet/)).toBeTruthy();
  fireEvent.click(within(list).getByRole("button", { name: "gpt-large" }));
  await askForPlan();
  expect(
    JSON.parse(api.requests.find(({ route }) => route === "POST /api/plan")?.body ?? ""),
  ).toEqual({
    prompt: "Compare three stores",
    provider: "openai",
    model: "gpt-large",
  });
});

test("a model that is on its way says how far it is", async () => {
  const download = { model: "qwen", done_bytes: 439, size_bytes: 1000 };
  api.routes["GET /api/providers"] = {
    providers: [],
    default_models: {},
    models: {},
    details: [
      { ...OPENAI, available: false, reason: "OPENAI_API_KEY is not set" },
      { ...LOCAL, download },
    ],
  };
  renderRoutes(ROUTES);
  const chip = await screen.findByRole("button", { name: /^Model:/ });
  expect(chip.textContent).toContain("Getting it, 43 %");
  fireEvent.click(chip);
  expect(await screen.findByText("No key set")).toBeTruthy();
});

test("steps appear while the plan is written; then it is forecast and run", async () => {
  const { router } = renderRoutes(ROUTES);
  await askForPlan();
  send("node", { id: "ways", name: "Name stores", type: "agent" });
  await screen.findByText("Name stores");
  expect(screen.queryByText("Pick one")).toBeNull();
  send("repair", {
    attempt: 2,
    diagnostics: [{ code: "x", severity: "error", message: "no sink", pointer: "", node: "ways" }],
  });
  await screen.findByText("Repairing the plan");
  expect(screen.getByText("Name stores:")).toBeTruthy();
  send("plan", PLAN);
  await screen.findByText("1,900 to 3,400");
  expect(screen.getByText("$0.0004")).toBeTruthy();
  expect(screen.getByText(/its result is not used/)).toBeTruthy();
  expect(screen.getByText(/1 fix made/)).toBeTruthy();
  expect(router.state.location.search).toBe("?plan=p1");
  fireEvent.click(screen.getByRole("button", { name: "Run" }));
  await screen.findByText("the run");
  expect(JSON.parse(api.requests.at(-1)?.body ?? "")).toMatchObject({ plan_id: "p1", start: true });
});

test("leaving while the plan is written stops nothing, and stopping keeps the goal", async () => {
  const { router } = renderRoutes(ROUTES);
  await askForPlan();
  await router.navigate("/settings");
  send("node", { id: "ways", name: "Name stores" });
  await router.navigate("/");
  await screen.findByText("Name stores");
  fireEvent.click(screen.getByRole("button", { name: "Stop writing" }));
  const prompt = (await screen.findByRole("textbox", { name: "Goal" })) as HTMLTextAreaElement;
  expect(prompt.value).toBe("Compare three stores");
});

test("a plan that is written while another page is shown is announced there", async () => {
  const { router } = renderRoutes(ROUTES);
  render(<Toaster />, { wrapper: TooltipProvider });
  await askForPlan();
  await router.navigate("/settings");
  await screen.findByText("settings");
  send("plan", PLAN);
  await screen.findByText("The plan is written: Which store");
  fireEvent.click(screen.getByRole("button", { name: "Show it" }));
  await screen.findByText("1,900 to 3,400");
});

test("the assumed answers are taken before the plan is shown, without another call", async () => {
  const market = { question: "Which market?", answer: "Germany", assumed: true, options: [] };
  renderRoutes(ROUTES);
  await askForPlan();
  send("plan", { ...PLAN, questions: [market] });
  const take = await screen.findByRole("button", { name: "Take these answers" });
  expect(screen.queryByRole("button", { name: "Run" })).toBeNull();
  fireEvent.click(take);
  await screen.findByRole("button", { name: "Run" });
  expect(screen.getByText("assumed")).toBeTruthy();
  expect(api.requests.filter(({ route }) => route === "POST /api/plan")).toHaveLength(1);
});

test("a plan that is to run at once runs when it is written", async () => {
  renderRoutes(ROUTES);
  await askForPlan();
  fireEvent.click(await screen.findByRole("switch", { name: "Run when it is written" }));
  send("plan", PLAN);
  await screen.findByText("the run");
});

test("where no plan comes of it, the service's sentence, its way out and every problem are shown", async () => {
  const issues = [
    {
      code: "flow-cycle",
      severity: "error",
      message: "a needs itself",
      pointer: "/edges/0",
      node: "a",
    },
  ];
  const more = { hint: "name a model that knows JSON", issues };
  api.routes["POST /api/plan"] = problem(502, "plan-invalid", "no plan could be read", more);
  renderRoutes(ROUTES);
  await ask();
  const alert = await screen.findByRole("alert");
  expect(alert.textContent).toBe("No plan could be read. Name a model that knows JSON.");
  expect(screen.getByText(/a needs itself/)).toBeTruthy();
  fireEvent.click(screen.getByRole("button", { name: "Change the goal" }));
  await screen.findByRole("button", { name: "Make a plan" });
});

test("a plan may have to be approved before its first step starts", async () => {
  renderRoutes(ROUTES, "/?plan=p1");
  fireEvent.click(await screen.findByRole("switch", { name: "Approve first" }));
  fireEvent.click(screen.getByRole("button", { name: "Run" }));
  await screen.findByText("the run");
  expect(JSON.parse(api.requests.at(-1)?.body ?? "")).toMatchObject({ require_approval: true });
});

test("a plan that cannot start says why and stays", async () => {
  api.routes["POST /api/execute"] = problem(422, "plan-invalid", "the provider is gone");
  renderRoutes(ROUTES, "/?plan=p1");
  fireEvent.click(await screen.findByRole("button", { name: "Run" }));
  await waitFor(() =>
    expect(screen.getByRole("alert").textContent).toContain("The provider is gone."),
  );
  expect(screen.getByRole("button", { name: "Run" })).toBeTruthy();
});

test("the last runs are listed with how far they are", async () => {
  const usage = {
    calls: 2,
    input_tokens: 1000,
    output_tokens: 204,
    cost_usd: null,
    estimated: false,
  };
  api.routes["GET /api/executions"] = {
    executions: [
      {
        execution_id: "x7",
        title: "Which store",
        user_prompt: PLAN.user_prompt,
        status: "executing",
        created_at: "2026-11-23T12:00:00+00:00",
        started_at: "2026-11-23T12:00:00+00:00",
        completed_at: null,
        digest: {
          steps: 2,
          waves: [{ completed: 1 }, { waiting: 1 }],
          usage,
          waitingForInput: true,
        },
      },
    ],
    next_cursor: null,
  };
  renderRoutes([{ path: "/", Component: GoalScreen }]);
  const row = await screen.findByRole("link", { name: /Which store/ });
  expect(row.getAttribute("href")).toBe("/runs/x7");
  expect(row.textContent).toContain("Waiting for you");
  expect(row.textContent).toContain("1,204 tokens");
  const cells = [...row.querySelectorAll("[data-status]")].map((cell) =>
    cell.getAttribute("data-status"),
  );
  expect(cells.slice(0, 2)).toEqual(["completed", "waiting"]);
});

test("an unknown plan leads back to a new goal", async () => {
  renderRoutes(ROUTES, "/?plan=none");
  await screen.findByRole("alert");
  fireEvent.click(screen.getByRole("link", { name: "New goal" }));
  await screen.findByRole("button", { name: "Make a plan" });
});

test("recent goals are runs, and plans that did not run yet", async () => {
  const plan = (id: string, status: string, created_at: string, name: string | null = null) => ({
    plan_id: id,
    user_prompt: `Goal of ${id}`,
    title: `Plan ${id}`,
    name,
    status,
    revision: 1,
    hash: id,
    created_at,
    provider: null,
    model: null,
    node_count: 3,
  });
  api.routes["GET /api/plans"] = {
    plans: [
      plan("p4", "draft", "2026-11-23T12:03:00+00:00", "A flow"),
      plan("p3", "draft", "2026-11-23T12:02:00+00:00"),
      plan("p2", "completed", "2026-11-23T12:01:00+00:00"),
    ],
    next_cursor: null,
  };
  renderRoutes(ROUTES);
  const row = await screen.findByRole("link", { name: /Plan p3/ });
  expect(row.textContent).toContain("Not run yet");
  expect(row.getAttribute("href")).toBe("/?plan=p3");
  expect(screen.queryByText("Plan p2")).toBeNull();
  const flow = screen.getByRole("link", { name: /A flow/ });
  expect(flow.getAttribute("href")).toBe("/flows/p4");
});

test("a plan with errors is a draft, which cannot run", async () => {
  const error = { ...PLAN.diagnostics[0], severity: "error", message: "it has no task" };
  api.routes["GET /api/plans/p1"] = { ...PLAN, diagnostics: [error], forecast: {} };
  renderRoutes(ROUTES, "/?plan=p1");
  const run = await screen.findByRole("button", { name: "Run" });
  expect(run.getAttribute("aria-disabled")).toBe("true");
  expect(screen.getByText("Fix 1 error to run")).toBeTruthy();
  expect(screen.getByText("Draft")).toBeTruthy();
});
