import { fireEvent, render, screen, within } from "@testing-library/react";
import { expect, test } from "vitest";
import { newNodeState, newRunState, type PlanChange, type RunState } from "@/stream/runState";
import { TooltipProvider } from "@/ui/Tooltip";
import { PlanChanges } from "./PlanChanges";

const BEFORE = {
  nodes: [
    { id: "a", type: "text", name: "Draft" },
    { id: "b", type: "agent", name: "Prices" },
    { id: "c", type: "text", name: "History" },
  ],
  edges: [],
};

function shown(run: Partial<RunState>) {
  render(
    <TooltipProvider>
      <PlanChanges run={{ ...newRunState("x"), ...run }} />
    </TooltipProvider>,
  );
}

test("a change lists what it dropped by name, and what was paid for steps that had begun", () => {
  const usage = { calls: 2, input_tokens: 90, output_tokens: 30, cost_usd: 0.25, estimated: false };
  const error = { code: "broken", message: "no prices found" };
  const prices = { ...newNodeState("b"), name: "Prices", status: "failed", usage, error } as const;
  const change: PlanChange = {
    number: 1,
    at: "2026-01-01T10:00:00Z",
    note: "without prices",
    revisedBy: { kind: "operator" },
    graphChange: { nodes: [], edges: [], dropped_nodes: ["b", "c"], dropped_edges: [] },
    before: BEFORE,
    dropped: [prices as never],
  };
  shown({ changes: [change] });
  fireEvent.click(screen.getByRole("button", { name: "Plan changed 1 time" }));
  const dialog = within(screen.getByRole("dialog", { name: "Changes of the plan" }));
  expect(dialog.getByText("Prices: failed")).toBeTruthy();
  expect(dialog.getByText("120 tokens, $0.25, counted in the total")).toBeTruthy();
  expect(dialog.getByText("no prices found")).toBeTruthy();
  expect(dialog.getByText("Taken out").nextElementSibling?.textContent).toBe("History");
});

test("a change that was not made says why, beside those that were", () => {
  const error = { code: "nothing-changed", message: "Nothing can help.", hint: null, node: null };
  shown({ refusals: [{ at: "2026-01-01T10:00:00Z", error }] });
  fireEvent.click(screen.getByRole("button", { name: "Plan not changed" }));
  const dialog = within(screen.getByRole("dialog", { name: "Changes of the plan" }));
  expect(dialog.getByText(/^Not changed, /)).toBeTruthy();
  expect(dialog.getByText("Nothing can help.")).toBeTruthy();
});

test("of a run that was never changed nothing is said", () => {
  shown({});
  expect(screen.queryByRole("button")).toBeNull();
});
