import { render, screen, within } from "@testing-library/react";
import { expect, test } from "vitest";
import { PlanLanes } from "./PlanLanes";

const step = (id: string) => ({ id, name: `Step ${id}`, type: "agent", description: `Do ${id}` });

test("steps stand in the lane of their wave, linked ones in that of their consumer", () => {
  const edges = [
    { source: "a", target: "b", isLink: false },
    { source: "model", target: "b", isLink: true },
  ];
  render(<PlanLanes steps={[step("a"), step("b"), step("model")]} edges={edges} />);
  const lane = (wave: number) => screen.getByRole("region", { name: `Wave ${wave}` });
  expect(within(lane(1)).getByText("Step a")).toBeTruthy();
  expect(within(lane(2)).getByText("Step b")).toBeTruthy();
  expect(within(lane(2)).getByText("Step model")).toBeTruthy();
  expect(within(lane(2)).getByText("2 steps")).toBeTruthy();
});

test("an edge to a step that is not written yet is not drawn", () => {
  const edges = [{ source: "a", target: "later", isLink: false }];
  const { container } = render(<PlanLanes steps={[step("a")]} edges={edges} isWriting />);
  expect(container.querySelectorAll("svg g[data-link]")).toHaveLength(0);
});
