import { expect, test } from "vitest";
import { comparePath, readTicks, toggleTick, withTicks } from "@/screens/compare/ticks";

test("a third tick takes the place of B, and B without A becomes A", () => {
  expect(toggleTick([], "x")).toEqual(["x"]);
  expect(toggleTick(["x"], "y")).toEqual(["x", "y"]);
  expect(toggleTick(["x", "y"], "z")).toEqual(["x", "z"]);
  expect(toggleTick(["x", "y"], "x")).toEqual(["y"]);
});

test("the older run is A, whichever was ticked first", () => {
  expect(toggleTick(["y"], "x")).toEqual(["x", "y"]);
});

test("ticks are in the address; a run is not compared with itself", () => {
  expect(readTicks(new URLSearchParams("a=x&b=y"))).toEqual(["x", "y"]);
  expect(readTicks(new URLSearchParams("a=x&b=x"))).toEqual(["x"]);
  expect(withTicks(new URLSearchParams("q=s&a=x&b=y"), ["y"]).toString()).toBe("q=s&a=y");
  expect(comparePath(["x", "y"])).toBe("/runs/compare?a=x&b=y");
});
