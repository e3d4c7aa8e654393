import { fireEvent, screen, waitFor, within } from "@testing-library/react";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { ImportResponse } from "@/api/types";
import { FIRST_GRAPH } from "@/screens/editor/graphEdits";
import { problem, renderRoutes, startTestApi, type TestApi } from "@/testApi";
import { ImportDialog } from "./ImportDialog";
import recorded from "./importAnswers.json";

const ANSWERS = recorded as unknown as Record<keyof typeof recorded, ImportResponse>;
const PASTE = /Paste a graph/;
let api: TestApi;
let target: ReturnType<typeof targetOf>;

beforeEach(async () => {
  api = await startTestApi({ "POST /api/import": ANSWERS.workflow });
  target = targetOf();
});

afterEach(() => api.close());

function targetOf() {
  return {
    onOwn: vi.fn(async () => {}),
    onOpen: vi.fn(async () => {}),
    onSave: vi.fn(async () => {}),
    onSaved: vi.fn(),
    onClose: vi.fn(),
  };
}

function show() {
  renderRoutes([{ path: "*", element: <ImportDialog {...target} /> }]);
}

/** Pastes a text and has it imported. */
function paste(text: string) {
  fireEvent.change(screen.getByLabelText(PASTE), { target: { value: text } });
  fireEvent.click(screen.getByRole("button", { name: "Import" }));
}

async function showReport(answer: ImportResponse, text = "a workflow") {
  api.routes["POST /api/import"] = answer;
  show();
  paste(text);
  await screen.findByRole("button", { name: "Open in the editor" });
  return within(await screen.findByRole("dialog", { name: "Import a file" }));
}

const region = (name: string) => within(screen.getByRole("region", { name }));
const sent = () =>
  api.requests
    .filter(({ route }) => route === "POST /api/import")
    .map(({ body }) => JSON.parse(body));
const AS_IT_IS = { kind: null, write_code: false, provider: null, model: null };

test("nothing is imported without a file or a text", async () => {
  show();
  fireEvent.click(screen.getByRole("button", { name: "Import" }));
  screen.getByText("Choose a file, or paste a text");
  expect(api.requests).toEqual([]);
});

test("a workflow of another program is shown before anything is done with it", async () => {
  const dialog = await showReport(ANSWERS.workflow);
  await dialog.findByText(/^This is an AgentFlow workflow/);
  expect(sent()).toEqual([{ text: "a workflow", ...AS_IT_IS }]);
  expect(document.activeElement?.textContent).toBe("7 steps:");
  dialog.getByRole("img", { name: /^The graph: 7 steps, / });
  const changed = region("Changed");
  changed.getByText("The whole file");
  changed.getByText(/2 ways lead to it/);
  changed.getByText("/nodes/5");
  expect(screen.getByRole("region", { name: "To set up" }).textContent).toContain(
    "Model provider openai for",
  );
  expect(dialog.queryByRole("region", { name: "To be replaced" })).toBeNull();
  expect(dialog.queryByRole("button", { name: /Python module/ })).toBeNull();
  expect(target.onOwn).not.toHaveBeenCalled();
});

test("the step that a row is about is marked in the graph, by pointer and by keyboard", async () => {
  await showReport(ANSWERS.programs);
  const rows = await waitFor(() => region("To be replaced"));
  const [search, handbook] = rows.getAllByRole("button") as [HTMLElement, HTMLElement];
  expect([search.tabIndex, handbook.tabIndex]).toEqual([0, -1]);
  fireEvent.mouseEnter(search.closest("li") as HTMLElement);
  const marked = () =>
    [...document.querySelectorAll("[data-marked=true] title")].map((each) => each.textContent);
  expect(marked()).toEqual(["Search"]);
  fireEvent.mouseLeave(search.closest("li") as HTMLElement);
  expect(marked()).toEqual([]);
  search.focus();
  fireEvent.keyDown(search, { key: "ArrowDown" });
  expect(document.activeElement).toBe(handbook);
  await waitFor(() => expect(marked()).toEqual(["Handbook"]));
  await waitFor(() => expect(handbook.tabIndex).toBe(0));
});

test("placeholders and lost parts have their reasons and places; the check is not said twice", async () => {
  await showReport(ANSWERS.programs);
  const replaced = await waitFor(() => region("To be replaced"));
  replaced.getByText("knowledge-retrieval");
  replaced.getByText("/workflow/graph/nodes/2");
  region("Lost").getByText("REGION");
  expect(screen.queryByRole("region", { name: "Errors" })).toBeNull();
});

test("programs become a module when that is asked for", async () => {
  await showReport(ANSWERS.programs);
  api.routes["POST /api/import"] = ANSWERS.module;
  fireEvent.click(await screen.findByRole("button", { name: "Write a Python module of it" }));
  await screen.findByRole("button", { name: "Download the Python module" });
  expect(sent().at(-1)).toMatchObject({ write_code: true });
  region("Errors").getByText(/unknown/);
});

test("a file without a program that Python can run says so", async () => {
  const answer = await showReport(ANSWERS.programs);
  fireEvent.click(await answer.findByRole("button", { name: "Write a Python module of it" }));
  await answer.findByText("It has no program that can become a Python module.");
});

test("a flow is saved once what changed is confirmed", async () => {
  await showReport(ANSWERS.workflow);
  fireEvent.click(await screen.findByRole("button", { name: "Save as flow …" }));
  const form = within(screen.getByRole("form", { name: "Save as flow" }));
  fireEvent.change(form.getByLabelText("Name of the flow"), { target: { value: "Triage" } });
  form.getByText("Confirm what changed");
  fireEvent.submit(screen.getByRole("form", { name: "Save as flow" }));
  expect(sent()).toHaveLength(1);
  fireEvent.click(form.getByLabelText("I have read what changed"));
  api.routes["POST /api/import"] = { ...ANSWERS.workflow, saved: "f1" };
  fireEvent.submit(screen.getByRole("form", { name: "Save as flow" }));
  await waitFor(() => expect(target.onSaved).toHaveBeenCalledWith("f1", "Triage"));
  expect(sent().at(-1)).toMatchObject({ text: "a workflow", save_as_flow: "Triage" });
  expect(target.onClose).toHaveBeenCalled();
});

test("a name that is taken is told, and another one can be given", async () => {
  await showReport(ANSWERS.plan);
  fireEvent.click(await screen.findByRole("button", { name: "Save as flow …" }));
  fireEvent.click(screen.getByLabelText("I have read what changed"));
  api.routes["POST /api/import"] = problem(409, "name-taken", "another flow has the name");
  fireEvent.submit(screen.getByRole("form", { name: "Save as flow" }));
  expect((await screen.findByRole("alert")).textContent).toBe("Another flow has the name.");
  expect(target.onClose).not.toHaveBeenCalled();
});

test("with placeholders a flow is a draft, and the dialog says so", async () => {
  await showReport(ANSWERS.programs);
  fireEvent.click(await screen.findByRole("button", { name: "Save as flow …" }));
  screen.getByText("It has 3 placeholders: it is saved as a draft, which nothing starts.");
});

test.each(["unavailable-provider", "unknown-model", "unknown-flow"])(
  "%s makes no draft of it",
  async (code) => {
    const found = { code, severity: "error", message: "it is not here", pointer: "/nodes/0" };
    const diagnostics = [found] as ImportResponse["diagnostics"];
    await showReport({ ...ANSWERS.workflow, diagnostics });
    fireEvent.click(await screen.findByRole("button", { name: "Save as flow …" }));
    screen.getByRole("form", { name: "Save as flow" });
    expect(screen.queryByText(/saved as a draft/)).toBeNull();
  },
);

test("it is opened in the editor with its title", async () => {
  await showReport(ANSWERS.programs);
  fireEvent.click(await screen.findByRole("button", { name: "Open in the editor" }));
  await waitFor(() => expect(target.onClose).toHaveBeenCalled());
  const { nodes, edges } = ANSWERS.programs.document;
  expect(target.onOpen).toHaveBeenCalledWith({
    name: "Code, tool, knowledge",
    description: "",
    title: "Code, tool, knowledge",
    graph: { nodes, edges },
    report: ANSWERS.programs.report,
  });
});

test("another provider, and a model of it, are asked in place of those in the file", async () => {
  const provider = {
    kind: "openai-compatible",
    available: true,
    models: ["small", "large"],
    default_model: "small",
    open_models: false,
  };
  const details = [
    { ...provider, name: "desk" },
    { ...provider, name: "open", open_models: true },
    { ...provider, name: "away", available: false },
  ];
  api.routes["GET /api/providers"] = { providers: [], default_models: {}, models: {}, details };
  await showReport(ANSWERS.workflow);
  const setup = region("To set up");
  const field = (await setup.findByLabelText("Provider")) as HTMLSelectElement;
  expect([...field.options].map((each) => each.text)).toEqual(["as in the file", "desk", "open"]);
  fireEvent.change(field, { target: { value: "desk" } });
  fireEvent.change(await setup.findByLabelText("Model"), { target: { value: "large" } });
  await waitFor(() =>
    expect(sent().slice(1)).toEqual([
      { text: "a workflow", ...AS_IT_IS, provider: "desk" },
      { text: "a workflow", ...AS_IT_IS, provider: "desk", model: "large" },
    ]),
  );
  fireEvent.change(field, { target: { value: "open" } });
  const model = await setup.findByPlaceholderText("its default, small");
  fireEvent.change(model, { target: { value: " tiny " } });
  fireEvent.blur(model);
  await waitFor(() => expect(sent().at(-1)).toMatchObject({ provider: "open", model: "tiny" }));
  fireEvent.click(screen.getByRole("button", { name: "Save as flow …" }));
  fireEvent.click(screen.getByLabelText("I have read what changed"));
  await waitFor(() => {
    fireEvent.submit(screen.getByRole("form", { name: "Save as flow" }));
    expect(sent().at(-1)).toMatchObject({
      provider: "open",
      model: "tiny",
      save_as_flow: "Imported flow",
    });
  });
});

test.each(["n8n", "langflow"])("programs of %s are never offered as a module", async (kind) => {
  const { programs } = ANSWERS;
  await showReport({ ...programs, report: { ...programs.report, kind } });
  await screen.findByRole("region", { name: "To be replaced" });
  expect(screen.queryByRole("button", { name: /Python module/ })).toBeNull();
});

test("programs in JavaScript are not counted", async () => {
  const { document } = ANSWERS.programs;
  const nodes = document.nodes.map((node) => ({
    ...node,
    data: { ...node.data, parameters: { code_language: "javascript" } },
  }));
  await showReport({ ...ANSWERS.programs, document: { ...document, nodes } });
  await screen.findByRole("region", { name: "To be replaced" });
  expect(screen.queryByRole("button", { name: /Python module/ })).toBeNull();
});

test("files are offered at once, and not again for another one", async () => {
  const opened = vi.spyOn(HTMLInputElement.prototype, "click").mockImplementation(() => {});
  await showReport(ANSWERS.workflow);
  fireEvent.click(await screen.findByRole("button", { name: "Another file" }));
  expect(opened).toHaveBeenCalledTimes(1);
  opened.mockRestore();
});

test("secrets are named with their places, and what matters less is folded", async () => {
  const { report } = ANSWERS.workflow;
  const [edge] = report.edges;
  const notes = [{ code: "import-dangling", message: "it leads nowhere", pointer: "/edges/0" }];
  const secrets = [{ name: "Authorization", pointer: "/nodes/1/headers" }];
  const edges = [{ ...edge, outcome: "dropped", notes }] as typeof report.edges;
  await showReport({ ...ANSWERS.workflow, report: { ...report, secrets, edges } });
  (await waitFor(() => region("Secrets that were not copied"))).getByText("/nodes/1/headers");
  const details = screen.getByText("Details").closest("details") as HTMLDetailsElement;
  expect(details.open).toBe(false);
  within(details).getByText(/it leads nowhere/);
});

test("a file that no format fits keeps its text and may be read as one that is named", async () => {
  const text = "something else";
  api.routes["POST /api/import"] = problem(422, "unknown-format", "this is no file that is known", {
    kinds: ["agiraph", "dify"],
  });
  show();
  paste(text);
  expect((await screen.findByRole("alert")).textContent).toBe("This is no file that is known.");
  expect((screen.getByLabelText(PASTE) as HTMLTextAreaElement).value).toBe(text);
  fireEvent.change(screen.getByLabelText("Read it as"), { target: { value: "dify" } });
  fireEvent.click(screen.getByRole("button", { name: "Import" }));
  await waitFor(() => expect(sent().at(-1)).toMatchObject({ text, kind: "dify" }));
  await screen.findByRole("alert");
  fireEvent.change(screen.getByLabelText(PASTE), { target: { value: "another text" } });
  expect(screen.queryByLabelText("Read it as")).toBeNull();
  expect(screen.queryByRole("alert")).toBeNull();
});

test("a text that is not valid YAML is told in a sentence", async () => {
  api.routes["POST /api/import"] = problem(422, "invalid-yaml", "line 2: a key is missing");
  show();
  paste("a: [");
  expect((await screen.findByRole("alert")).textContent).toBe("Line 2: a key is missing.");
  expect(screen.queryByLabelText("Read it as")).toBeNull();
});

test("a graph of planwave goes straight through, with the name that its file gives it", async () => {
  api.routes["POST /api/import"] = ANSWERS.own;
  show();
  const exported = { name: "Note", description: "Writes a note", graph: FIRST_GRAPH };
  const file = new File([JSON.stringify(exported)], "moved.json");
  fireEvent.change(screen.getByLabelText("File to import"), { target: { files: [file] } });
  await waitFor(() => expect(target.onClose).toHaveBeenCalled());
  expect(target.onOwn).toHaveBeenCalledWith({ ...exported, title: undefined });
});

test("a graph of planwave in YAML has the graph that the service read", async () => {
  api.routes["POST /api/import"] = ANSWERS.own;
  show();
  const file = new File(["nodes: []"], "my flow.yaml");
  fireEvent.change(screen.getByLabelText("File to import"), { target: { files: [file] } });
  await waitFor(() => expect(target.onOwn).toHaveBeenCalled());
  const { nodes, edges, title } = ANSWERS.own.document;
  expect(target.onOwn).toHaveBeenCalledWith(
    expect.objectContaining({ name: title || "my flow", graph: { nodes, edges } }),
  );
});

test("a graph without steps is taken though its shape tells nothing", async () => {
  api.routes["POST /api/import"] = problem(422, "unknown-format", "this is no file that is known");
  show();
  paste('{"nodes": [], "edges": [], "title": "Empty"}');
  await waitFor(() => expect(target.onClose).toHaveBeenCalled());
  expect(target.onOwn).toHaveBeenCalledWith(
    expect.objectContaining({ name: "Empty", title: "Empty", graph: { nodes: [], edges: [] } }),
  );
});

test("a graph of planwave that is refused can be opened in the editor all the same", async () => {
  target.onOwn.mockRejectedValueOnce(new Error("the graph has errors"));
  await showReport(ANSWERS.own, JSON.stringify({ name: "Mine", graph: FIRST_GRAPH }));
  expect((await screen.findByRole("alert")).textContent).toBe("The graph has errors.");
  fireEvent.click(screen.getByRole("button", { name: "Open in the editor" }));
  await waitFor(() => expect(target.onClose).toHaveBeenCalled());
  expect(target.onOpen).toHaveBeenCalledWith(expect.objectContaining({ name: "Mine" }));
});

test("another file can be chosen, and the text is still there", async () => {
  await showReport(ANSWERS.workflow, "my text");
  fireEvent.click(await screen.findByRole("button", { name: "Another file" }));
  expect((screen.getByLabelText(PASTE) as HTMLTextAreaElement).value).toBe("my text");
});

test("a file that is no text is refused", async () => {
  show();
  const file = new File([new Uint8Array([0xff, 0xfe])], "a.bin");
  fireEvent.change(screen.getByLabelText("File to import"), { target: { files: [file] } });
  expect((await screen.findByRole("alert")).textContent).toBe("A.bin is not a text in UTF-8.");
});
