import { fireEvent, screen, within } from "@testing-library/react";
import { afterEach, beforeEach, expect, test } from "vitest";
import { useSession } from "@/api/session";
import { SettingsScreen } from "@/screens/settings/SettingsScreen";
import { problem, renderRoutes, startTestApi, type TestApi } from "@/testApi";
import { usePreferences } from "@/ui/preferences";

const PORT = { label: "", side: "left", color: "", shape: "", multiple: false, required: false };
const AGENT = {
  node_type: "agent",
  purpose: "Do one task with a language model.",
  inputs: [
    { ...PORT, name: "input", type: "any", channel: "flow", multiple: true },
    { ...PORT, name: "model", type: "model", channel: "link" },
    { ...PORT, name: "model", type: "model", channel: "flow" },
  ],
  outputs: [{ ...PORT, name: "output", type: "text", channel: "flow" }],
  effect: "none",
  schema: {
    type: "object",
    properties: {
      userPrompt: { type: "string", description: "The task." },
      temperature: { type: "number", default: 0.2 },
    },
    required: ["userPrompt"],
  },
};
const VOID = { ...AGENT, node_type: "void", purpose: "Take a value and drop it.", schema: {} };
const LIMIT = { default: 10, hard_cap: 100, unit: "count" };

let api: TestApi;

beforeEach(async () => {
  usePreferences.setState({ theme: "system", singleKeys: true });
  api = await startTestApi({
    "GET /api/providers": {
      providers: ["openai"],
      details: [
        {
          name: "openai",
          kind: "openai",
          available: true,
          reason: "OPENAI_API_KEY is set",
          how_to_enable: "",
          models: ["gpt-small"],
          default_model: "gpt-small",
          open_models: true,
          download: null,
        },
        {
          name: "local",
          kind: "local",
          available: false,
          reason: "the model is not downloaded yet",
          how_to_enable: "planwave model pull",
          models: ["qwen"],
          default_model: "qwen",
          open_models: false,
          download: null,
        },
      ],
    },
    "GET /api/node-types": { node_types: [AGENT, VOID], socket_types: [] },
    "GET /api/limits": {
      limits: [
        { ...LIMIT, name: "a", value: 10, what: "Runs at once.", variable: "LIMIT_A" },
        { ...LIMIT, name: "b", value: 64_000, unit: "bytes", what: "A body.", variable: "LIMIT_B" },
      ],
    },
    "DELETE /api/session": (response) => response.writeHead(204).end(),
  });
});

afterEach(() => api.close());

function open(tab: string) {
  return renderRoutes([{ path: "/settings", Component: SettingsScreen }], `/settings?tab=${tab}`);
}

test("providers say whether they can be used, and what to do otherwise", async () => {
  open("models");
  const [openai, local] = await screen.findAllByRole("heading", { level: 2 });
  expect(openai?.closest("li")?.textContent).toContain("Ready");
  const missing = local?.closest("li")?.textContent;
  expect(missing).toContain("Not downloaded");
  expect(missing).toContain("the model is not downloaded yet. Run planwave model pull.");
});

test("node types are found by their fields, and show ports and fields when opened", async () => {
  open("node-types");
  const search = await screen.findByRole("searchbox", { name: "Search node types" });
  expect(screen.getByText("2 in all")).toBeTruthy();
  fireEvent.change(search, { target: { value: "temperature" } });
  expect(screen.getByText("1 of 2")).toBeTruthy();
  const details = screen.getByText("agent").closest("details");
  if (!details) throw new Error("a node type opens");
  details.open = true;
  fireEvent(details, new Event("toggle"));
  const inputs = await screen.findByRole("region", { name: "Inputs" });
  expect(
    within(inputs)
      .getAllByRole("listitem")
      .map((port) => port.textContent),
  ).toEqual(["input: any, several", "model: model, flow or link"]);
  const fields = screen.getByRole("region", { name: "Fields" });
  expect(fields.textContent).toContain("The task. Required.");
  expect(fields.textContent).toContain("Else 0.2.");
});

test("limits have their unit, and say what is usual where it was changed", async () => {
  open("limits");
  const size = (await screen.findByText("A body.")).closest("li");
  expect(size?.textContent).toContain("64 kB");
  expect(size?.textContent).toContain("usually 10 bytes");
  expect(screen.getByText("Runs at once.").closest("li")?.textContent).not.toContain("usually");
});

test("what cannot be loaded says why", async () => {
  api.routes["GET /api/limits"] = problem(500, "internal", "the limits are gone");
  open("limits");
  expect((await screen.findByRole("alert")).textContent).toBe("The limits are gone.");
});

test("theme, keys and login are kept in the browser", async () => {
  useSession.setState({ isLoggedIn: true, needsLogin: false });
  open("browser");
  fireEvent.click(await screen.findByRole("radio", { name: "Dark" }));
  fireEvent.click(screen.getByRole("switch", { name: "Single letters" }));
  expect(usePreferences.getState()).toMatchObject({ theme: "dark", singleKeys: false });
  fireEvent.click(screen.getByRole("button", { name: "Log out" }));
  await screen.findByText("Keys");
  await expect
    .poll(() => useSession.getState())
    .toMatchObject({ isLoggedIn: false, needsLogin: true });
});
