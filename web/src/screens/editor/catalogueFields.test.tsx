import { fireEvent, screen } from "@testing-library/react";
import { useState } from "react";
import { afterEach, beforeEach, expect, test } from "vitest";
import { renderRoutes, startTestApi, type TestApi } from "@/testApi";
import { type FormValue, SchemaForm } from "@/ui/SchemaForm";
import type { JsonSchema } from "@/ui/schema";
import { catalogueControls, usualFields } from "./catalogueFields";

const TEXT = { type: "string" };
const SCHEMAS: Record<string, JsonSchema> = {
  tool: { type: "object", properties: { name: TEXT }, required: ["name"] },
  toolset: { type: "object", properties: { names: { type: "array", items: TEXT } } },
  mcp_server: { type: "object", properties: { server: TEXT } },
  flow_tool: { type: "object", properties: { flow: { type: "object" } } },
  agent: {
    type: "object",
    properties: {
      systemPrompt: TEXT,
      temperature: { type: "number" },
      userPrompt: TEXT,
      provider: TEXT,
      model: TEXT,
      fallback: {
        type: "array",
        items: { type: "object", properties: { provider: TEXT, model: TEXT } },
      },
      maxSteps: { type: "integer" },
      agentName: TEXT,
    },
  },
  call_tool: {
    type: "object",
    properties: { tool: TEXT, server: TEXT, flow: { type: "object" } },
  },
};
let api: TestApi;

const provider = (name: string, more: object) => ({
  name,
  kind: "remote",
  available: true,
  models: [],
  default_model: null,
  open_models: false,
  ...more,
});

beforeEach(async () => {
  const tool = (name: string, effect: string) => ({
    name,
    effect,
    description: `Does ${name}.`,
    approval: "never",
    timeout_s: null,
    parameters: {},
    origin: { kind: "module", name: "shop" },
  });
  api = await startTestApi({
    "GET /api/tools": { tools: [tool("look_up", "read"), tool("send_mail", "once")] },
    "GET /api/mcp-servers": { servers: [{ name: "tickets", kind: "stdio" }] },
    "GET /api/providers": {
      details: [
        provider("local", { kind: "local", models: ["small"], default_model: "small" }),
        provider("openai", { models: ["gpt-5", "gpt-5-mini"], open_models: true }),
        provider("anthropic", { available: false, models: ["claude"] }),
      ],
    },
    "GET /api/plans": { plans: [{ plan_id: "f1", name: "Refund" }], next_cursor: null },
  });
});

afterEach(() => api.close());

/** Shows the form of a node type; the list of its values grows with each change. */
function show(type: string, initial: FormValue): FormValue[] {
  const values: FormValue[] = [];
  function Form() {
    const [value, setValue] = useState(initial);
    return (
      <SchemaForm
        schema={SCHEMAS[type] ?? {}}
        value={value}
        controls={catalogueControls({ node_type: type, schema: SCHEMAS[type] ?? {} })}
        usual={usualFields({ schema: SCHEMAS[type] ?? {}, node_type: type })}
        onChange={(next) => {
          values.push(next);
          setValue(next);
        }}
      />
    );
  }
  renderRoutes([{ path: "/", element: <Form /> }]);
  return values;
}

test("a tool is one of those of the operator, with its effect and its description", async () => {
  const values = show("tool", {});
  await screen.findByRole("option", { name: "look_up (reads)" });
  fireEvent.change(screen.getByLabelText("Tool"), { target: { value: "send_mail" } });
  expect(values).toEqual([{ name: "send_mail" }]);
  expect(screen.getByText("Does send_mail.")).toBeTruthy();
});

test("a name that is not in the list stays, and is marked", async () => {
  show("tool", { name: "sned_mail" });
  await screen.findByRole("option", { name: "sned_mail, which is not there" });
  expect((screen.getByLabelText("Tool") as HTMLSelectElement).value).toBe("sned_mail");
});

test("without a list any name can be typed", () => {
  api.routes["GET /api/tools"] = { tools: [] };
  const values = show("tool", {});
  fireEvent.change(screen.getByLabelText("Tool"), { target: { value: "mine" } });
  expect(values).toEqual([{ name: "mine" }]);
});

test("a step calls a tool of the operator, or one of a server under any name", async () => {
  const values = show("call_tool", {});
  await screen.findByRole("option", { name: "tickets (a program)" });
  const tool = screen.getByLabelText("Tool");
  expect([...((tool as HTMLInputElement).list?.options ?? [])].map((each) => each.value)).toEqual([
    "look_up",
    "send_mail",
  ]);
  fireEvent.change(tool, { target: { value: "send_mail" } });
  expect(screen.getByText("Does send_mail.")).toBeTruthy();
  fireEvent.change(screen.getByLabelText("Server"), { target: { value: "tickets" } });
  fireEvent.change(tool, { target: { value: "search" } });
  expect(values.at(-1)).toEqual({ server: "tickets", tool: "search" });
});

test("a set has several tools, an unknown one too", async () => {
  const values = show("toolset", { names: ["gone"] });
  fireEvent.click(await screen.findByLabelText("look_up"));
  fireEvent.click(screen.getByLabelText("gone, which is not there"));
  expect(values).toEqual([{ names: ["gone", "look_up"] }, { names: ["look_up"] }]);
});

test.each(["Refund", "refund"])("a flow that is named %s is the chosen one", async (name) => {
  const values = show("call_tool", { flow: { name } });
  await screen.findByRole("option", { name: "Refund" });
  const field = screen.getByLabelText("Flow") as HTMLSelectElement;
  expect([...field.selectedOptions].map((each) => each.text)).toEqual(["Refund"]);
  fireEvent.change(field, { target: { value: "" } });
  expect(values).toEqual([{}]);
});

test("a flow that is named and not there is said", async () => {
  show("flow_tool", { flow: { name: "Gone" } });
  await screen.findByRole("option", { name: "Refund" });
  const field = screen.getByLabelText("Flow") as HTMLSelectElement;
  expect([...field.selectedOptions].map((each) => each.text)).toEqual(["Gone, which is not there"]);
});

test("a server and a flow are chosen by name", async () => {
  const servers = show("mcp_server", {});
  await screen.findByRole("option", { name: "tickets (a program)" });
  fireEvent.change(screen.getByLabelText("Server"), { target: { value: "tickets" } });
  expect(servers).toEqual([{ server: "tickets" }]);
  const flows = show("flow_tool", {});
  await screen.findByRole("option", { name: "Refund" });
  fireEvent.change(screen.getByLabelText("Flow"), { target: { value: "f1" } });
  expect(flows).toEqual([{ flow: { id: "f1" } }]);
});

test("a model is one of its provider, or any that is named where the provider takes any", async () => {
  const values = show("agent", {});
  await screen.findByRole("option", { name: "small, as usual" });
  expect(screen.getByRole("option", { name: "anthropic (cannot be used yet)" })).toBeTruthy();
  expect(screen.queryByRole("option", { name: "Another one, by name …" })).toBeNull();
  fireEvent.change(screen.getByLabelText("Provider"), { target: { value: "openai" } });
  fireEvent.change(screen.getByLabelText("Model"), { target: { value: "gpt-5" } });
  expect(values.at(-1)).toEqual({ provider: "openai", model: "gpt-5" });
  const other = screen.getByRole("option", { name: "Another one, by name …" });
  fireEvent.change(screen.getByLabelText("Model"), {
    target: { value: (other as HTMLOptionElement).value },
  });
  fireEvent.change(screen.getByLabelText("Model"), { target: { value: "gpt-6" } });
  expect(values.at(-1)).toEqual({ provider: "openai", model: "gpt-6" });
});

test("the models that take over are chosen by the same lists, each of its own provider", async () => {
  const values = show("agent", { fallback: [{ provider: "openai" }] });
  await screen.findByRole("option", { name: "gpt-5-mini" });
  const [, model] = screen.getAllByLabelText("Model");
  fireEvent.change(model as HTMLElement, { target: { value: "gpt-5-mini" } });
  expect(values).toEqual([{ fallback: [{ provider: "openai", model: "gpt-5-mini" }] }]);
});

test("a long form begins with what is mostly set, and folds the rest", async () => {
  show("agent", { temperature: 0.5 });
  await screen.findByRole("option", { name: "small, as usual" });
  const labels = screen.getAllByText(/^(Provider|Model|System prompt|User prompt|Temperature)$/);
  expect(labels.map((each) => each.textContent)).toEqual([
    "Provider",
    "Model",
    "System prompt",
    "User prompt",
    "Temperature",
  ]);
  const fold = screen.getByText("More settings").closest("details") as HTMLDetailsElement;
  expect([fold.open, fold.contains(screen.getByLabelText("Temperature"))]).toEqual([true, true]);
  expect(screen.getByText("1 set")).toBeTruthy();
});
