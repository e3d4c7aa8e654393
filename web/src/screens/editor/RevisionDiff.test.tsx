import { render, screen } from "@testing-library/react";
import { expect, test } from "vitest";
import type { GraphDocument } from "@/api/types";
import { Differences } from "./RevisionDiff";

const GRAPH: GraphDocument = {
  nodes: ["draft", "ask", "sent"].map((id) => ({ id, type: "text" })),
  edges: [{ id: "e2", source: "ask", target: "sent", data: { channel: "flow" } }],
};

function lines(): (string | null)[] {
  return [...(screen.getAllByRole("list")[0]?.children ?? [])].map((each) => each.textContent);
}

test("a wire between other steps under the same id is named by the ends that it had and has", () => {
  const was = { id: "e2", source: "ask", sourceHandle: "approve", target: "sent" };
  const edges = [
    { id: "e2", change: "removed" as const, before: was },
    { id: "e2", change: "added" as const, after: { id: "e2", source: "draft", target: "costs" } },
  ];
  render(<Differences diff={{ title: null, nodes: [], edges }} graph={GRAPH} isWhole />);
  expect(lines()).toEqual(["−removed: ask → sent", "+added: draft → costs"]);
});

test("of a new wire only what is unusual is said, and of one that is changed what is", () => {
  const data = { channel: "flow" };
  const added = { id: "n", source: "ask", sourceHandle: "reject", target: "draft", data };
  const edges = [
    { id: "n", change: "added" as const, after: { ...added, targetHandle: "input" } },
    {
      ...{ id: "e2", change: "changed" as const },
      fields: [{ pointer: "/sourceHandle", before: "approve", after: "reject" }],
    },
  ];
  render(<Differences diff={{ title: null, nodes: [], edges }} graph={GRAPH} isWhole />);
  expect(lines()).toEqual([
    "+added: ask → draftsourceHandle  reject",
    "~changed: ask → sentsourceHandle approve reject",
  ]);
});
