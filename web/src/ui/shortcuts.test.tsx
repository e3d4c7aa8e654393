import { cleanup, fireEvent, render, screen } from "@testing-library/react";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { usePreferences } from "@/ui/preferences";
import { listedGroups, listenToKeys, printedKeys, useShortcuts } from "@/ui/shortcuts";

const goToRuns = vi.fn();
const run = vi.fn();
const search = vi.fn();
const copy = vi.fn();
let stop: () => void;

function Page() {
  useShortcuts("Everywhere", [
    { keys: "g r", does: "Go to runs", run: goToRuns },
    { keys: "mod+enter", does: "Run", run },
    { keys: "/", does: "Search", run: search },
    { keys: "mod+c", does: "Copy", run: copy },
  ]);
  return (
    <>
      <input aria-label="Goal" />
      <div role="dialog" tabIndex={-1} />
    </>
  );
}

beforeEach(() => {
  stop = listenToKeys();
  for (const mock of [goToRuns, run, search, copy]) mock.mockClear();
  usePreferences.setState({ singleKeys: true });
});

afterEach(() => {
  cleanup();
  stop();
});

function press(key: string, more: KeyboardEventInit = {}, target: Element = document.body) {
  fireEvent.keyDown(target, { key, ...more });
}

test("two letters one after the other are one shortcut", () => {
  render(<Page />);
  press("r");
  expect(goToRuns).not.toHaveBeenCalled();
  press("g");
  press("r");
  expect(goToRuns).toHaveBeenCalledOnce();
});

test("letters stay letters in a field, Ctrl Enter works there too", () => {
  render(<Page />);
  const field = screen.getByLabelText("Goal");
  press("/", {}, field);
  expect(search).not.toHaveBeenCalled();
  press("c", { ctrlKey: true }, field);
  expect(copy).not.toHaveBeenCalled();
  press("c", { ctrlKey: true });
  expect(copy).toHaveBeenCalledOnce();
  press("Enter", { ctrlKey: true }, field);
  press("Enter", { metaKey: true }, field);
  expect(run).toHaveBeenCalledTimes(2);
});

test("keys in a dialog do nothing to the page below it", () => {
  render(<Page />);
  const dialog = screen.getByRole("dialog");
  press("/", {}, dialog);
  press("Enter", { ctrlKey: true }, dialog);
  expect(search).not.toHaveBeenCalled();
  expect(run).not.toHaveBeenCalled();
});

test("single letters and signs can be switched off", () => {
  usePreferences.setState({ singleKeys: false });
  render(<Page />);
  press("g");
  press("r");
  press("/");
  press("Enter", { ctrlKey: true });
  expect(goToRuns).not.toHaveBeenCalled();
  expect(search).not.toHaveBeenCalled();
  expect(run).toHaveBeenCalledOnce();
});

test("keys of a page that is gone do nothing", () => {
  render(<Page />).unmount();
  press("/");
  expect(search).not.toHaveBeenCalled();
});

test("the help lists each group once, that of every page last", () => {
  const everywhere = { name: "Everywhere", shortcuts: [{ keys: "/", does: "Search" }] };
  const add = { keys: "n", does: "Add a step" };
  const undo = { keys: "mod+z", does: "Undo" };
  const editor = [add, undo].map((each) => ({ name: "The editor", shortcuts: [each] }));
  expect(listedGroups([...editor.slice(0, 1), everywhere, ...editor.slice(1)])).toEqual([
    { name: "The editor", shortcuts: [add, undo] },
    everywhere,
  ]);
});

test("keys are printed as they are on the keyboard", () => {
  expect(printedKeys("mod+enter")).toEqual([["Ctrl", "↵"]]);
  expect(printedKeys("g r")).toEqual([["G"], ["R"]]);
  expect(printedKeys("shift+f")).toEqual([["Shift", "F"]]);
  expect(printedKeys("+")).toEqual([["+"]]);
});
