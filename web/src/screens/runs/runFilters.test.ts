import { expect, test } from "vitest";
import {
  apiFilters,
  hasFilters,
  readFilters,
  withFilters,
  withoutFilters,
} from "@/screens/runs/runFilters";

const NOW = new Date(2026, 10, 23, 14, 30);

function filtersAt(address: string) {
  return readFilters(new URLSearchParams(address));
}

test("filters are read from the address and written back, beside the ticks", () => {
  const params = new URLSearchParams("a=1&b=2");
  const next = withFilters(params, { status: "failed", time: "week", text: "stores" });
  expect(next.toString()).toBe("a=1&b=2&status=failed&time=week&q=stores");
  expect(readFilters(next)).toMatchObject({ status: "failed", time: "week", text: "stores" });
  expect(withFilters(next, { status: "all" }).toString()).toBe("a=1&b=2&time=week&q=stores");
  expect(withoutFilters(next).toString()).toBe("a=1&b=2");
});

test("an address with words that are no filter has none", () => {
  const filters = filtersAt("status=paused&time=never");
  expect(filters).toMatchObject({ status: "all", time: "all", text: "" });
  expect(hasFilters(filters)).toBe(false);
  expect(hasFilters(filtersAt("q=x"))).toBe(true);
});

test("the API is asked for what the filters mean", () => {
  expect(apiFilters(filtersAt(""), NOW)).toEqual({});
  expect(apiFilters(filtersAt("status=running"), NOW)).toEqual({ status: "executing" });
  expect(apiFilters(filtersAt("status=waiting&q=x"), NOW)).toEqual({ waiting: true, q: "x" });
  expect(apiFilters(filtersAt("status=failed"), NOW)).toEqual({ status: "failed" });
});

test("days begin at the reader's midnight, and seven days count today", () => {
  const since = (address: string) => apiFilters(filtersAt(address), NOW).since;
  expect(since("time=today")).toBe(new Date(2026, 10, 23).toISOString());
  expect(since("time=week")).toBe(new Date(2026, 10, 17).toISOString());
});

test("a range has whole days of the reader, and any end may be open", () => {
  const range = (address: string) => apiFilters(filtersAt(`time=range&${address}`), NOW);
  expect(range("from=2026-03-01&to=2026-03-31")).toEqual({
    since: new Date(2026, 2, 1).toISOString(),
    until: new Date(2026, 3, 1).toISOString(),
  });
  expect(range("from=2026-03-01")).toEqual({ since: new Date(2026, 2, 1).toISOString() });
  expect(range("from=soon&to=2026-99-99")).toEqual({});
});

test("labels, flows and orders are asked for; an order is no filter", () => {
  const address = "flow=f1&tag=trip&starred=yes&sort=cost&order=asc";
  const asked = { plan_id: "f1", tag: "trip", starred: true, sort: "cost", order: "asc" };
  expect(apiFilters(filtersAt(address), NOW)).toEqual(asked);
  expect(hasFilters(filtersAt("sort=cost&order=asc"))).toBe(false);
  expect(hasFilters(filtersAt("starred=yes"))).toBe(true);
  expect(withoutFilters(new URLSearchParams(address)).toString()).toBe("sort=cost&order=asc");
});
