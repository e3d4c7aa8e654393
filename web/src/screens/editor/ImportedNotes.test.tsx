import { render, screen, within } from "@testing-library/react";
import { expect, test } from "vitest";
import type { ImportResponse } from "@/api/types";
import recorded from "@/screens/import/importAnswers.json";
import { ImportedNotes } from "./ImportedNotes";

const { programs, workflow } = recorded as unknown as Record<string, ImportResponse>;

function show({ report }: ImportResponse, id: string) {
  render(<ImportedNotes report={report} id={id} />);
  return screen.queryByRole("region", { name: "Import" })?.textContent;
}

test("a step says what it was, and each thing that is said of it", () => {
  const [search] = programs?.report.nodes.filter((node) => node.outcome === "placeholder") ?? [];
  const text = show(programs as ImportResponse, search?.target[0] ?? "");
  expect(text).toContain(`Imported: ${search?.source_name}, ${search?.source_kind} of a Dify app`);
  for (const note of search?.notes ?? []) expect(text).toContain(note.message);
});

test("a step that came over as it was says only what it was", () => {
  const { report } = workflow as ImportResponse;
  const plain = report.nodes.find((node) => node.notes.length === 0);
  expect(show(workflow as ImportResponse, plain?.target[0] ?? "")).toContain(
    "an AgentFlow workflow",
  );
  expect(within(screen.getByRole("region")).queryByRole("list")).toBeNull();
});

test("what became steps inside it, and what is lost of it, is said too", () => {
  const { report } = workflow as ImportResponse;
  const [first] = report.nodes;
  if (!first) throw new Error("no nodes");
  const note = { code: "import-changed", message: "it asks twice", pointer: "/nodes/9" };
  const nodes = [
    { ...first, source: "/nodes/8", target: ["loop"], notes: [] },
    { ...first, source: "/nodes/9", target: ["loop/step"], notes: [note] },
    { ...first, source: "/nodes/10", target: ["loop/other"], source_name: "Quiet", notes: [] },
  ];
  const lost = [{ code: "import-expression", pointer: "/nodes/9/a", text: "x", message: "gone" }];
  const text = show({ ...workflow, report: { ...report, nodes, lost } } as ImportResponse, "loop");
  expect(text).toMatch(/it asks twice.*gone.*\/nodes\/9\/a/);
  expect(text).not.toContain("Quiet");
});

test("a step that was added later says nothing", () => {
  expect(show(programs as ImportResponse, "added")).toBeUndefined();
});
