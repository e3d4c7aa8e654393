import { expect, test } from "vitest";
import { aroundPath, layoutLanes } from "./layout";

const SIZES = { laneWidth: 344, cardWidth: 256, gap: 12 };
const card = (id: string, wave: number | null) => ({ id, wave, height: 82 });
const edge = (source: string, target: string) => ({ source, target });

test("each wave is a column, and columns are centred on the tallest one", () => {
  const layout = layoutLanes(
    [card("a", 1), card("b", 2), card("c", 2), card("d", 3)],
    [edge("a", "b"), edge("a", "c"), edge("b", "d")],
    SIZES,
  );
  expect(layout.lanes.map((lane) => [lane.wave, lane.x, lane.ids])).toEqual([
    [1, 0, ["a"]],
    [2, 344, ["b", "c"]],
    [3, 688, ["d"]],
  ]);
  expect(layout.height).toBe(176);
  expect(layout.positions.get("a")).toEqual({ x: 44, y: 47 });
  expect(layout.positions.get("c")).toEqual({ x: 388, y: 94 });
});

test("rows follow the rows of the parents, so that edges cross less", () => {
  const layout = layoutLanes(
    [card("a", 1), card("b", 1), card("of_b", 2), card("of_a", 2)],
    [edge("b", "of_b"), edge("a", "of_a")],
    SIZES,
  );
  expect(layout.lanes[1]?.ids).toEqual(["of_a", "of_b"]);
});

test("a linked node stands below the column of its consumer", () => {
  const layout = layoutLanes(
    [card("model", null), card("a", 1), card("agent", 2)],
    [edge("a", "agent"), edge("model", "agent")],
    SIZES,
  );
  expect(layout.lanes[1]?.ids).toEqual(["agent", "model"]);
});

test("nodes that are linked to each other in a circle are still drawn", () => {
  const layout = layoutLanes(
    [card("x", null), card("y", null)],
    [edge("x", "y"), edge("y", "x")],
    SIZES,
  );
  expect(layout.positions.size).toBe(2);
});

test("1,000 nodes are laid out in linear time", () => {
  const nodes = Array.from({ length: 1000 }, (_, index) => card(`n${index}`, 1 + (index % 20)));
  const edges = nodes.slice(20).map((node, index) => edge(`n${index}`, node.id));
  expect(layoutLanes(nodes, edges, SIZES).positions.size).toBe(1000);
});

test("a step that a person has put elsewhere stands there, in its lane", () => {
  const place = { x: -500, y: 30.5 };
  const layout = layoutLanes([{ ...card("a", 1), place }, card("b", 2)], [edge("a", "b")], SIZES);
  expect(layout.positions.get("a")).toEqual(place);
  expect(layout.lanes[0]?.ids).toEqual(["a"]);
});

test("a link goes around the cards between its ends", () => {
  const path = aroundPath({ x: 104, y: 300 }, { x: 150, y: 90 }, -18, 12);
  const xs = [...path.matchAll(/[MHQ](-?[\d.]+)/g)].map(([, x]) => Number(x));
  expect(Math.min(...xs)).toBe(-18);
  expect(path.startsWith("M104 300")).toBe(true);
  expect(path.endsWith("150 90")).toBe(true);
});
