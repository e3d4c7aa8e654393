import { useEffect, useRef } from "react";
import { create } from "zustand";
import { readJson, writeJson } from "@/json";
import { usePreferences } from "@/ui/preferences";

export interface Shortcut {
  /**
   * Keys as `KeyboardEvent.key`, lower case: "g n" one after the other, "mod+enter" (Ctrl, or Cmd on a
   * Mac), "shift+f", "?".
   */
  keys: string;
  /** The action, for the list of keys: "Go to runs". */
  does: string;
  /** Left out where the browser does it (copy, paste): the keys are only listed. */
  run?: () => void;
}

interface ShortcutGroup {
  /** Where the keys work: "Everywhere", "This run". */
  name: string;
  shortcuts: readonly Shortcut[];
}

/** The name of the group that works on every page. */
export const EVERYWHERE = "Everywhere";

const PREFIX_MS = 1500;
/** The only shortcut that works in fields: the others belong to the text there, such as copying. */
const IN_FIELDS = "mod+enter";

/** The groups whose keys work now, for the list of keys. */
export const useShortcutGroups = create<{ groups: readonly ShortcutGroup[] }>(() => ({
  groups: [],
}));

let prefix = "";
let prefixAt = 0;

/** The name of the pressed key, with the modifiers that matter. */
function pressedKeys(event: KeyboardEvent): string {
  const key = event.key.toLowerCase();
  const isSign = key.length === 1 && key.toUpperCase() === key;
  const mod = event.ctrlKey || event.metaKey ? "mod+" : "";
  const shift = event.shiftKey && !isSign ? "shift+" : "";
  return mod + shift + key;
}

/** Whether keys that are pressed there are text, not commands. */
export function isTyping(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  if (target.isContentEditable) return true;
  if (target instanceof HTMLInputElement) return !["checkbox", "radio"].includes(target.type);
  return target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement;
}

/** Whether the keys are those of a dialog or menu that lies over the page. */
function isOverPage(target: EventTarget | null): boolean {
  return target instanceof Element && target.closest("[role=dialog], [role=menu]") !== null;
}

function isSingle(keys: string): boolean {
  return !keys.includes("mod+") && [...keys.replace("shift+", "")].length === 1;
}

/** Returns the shortcut that these keys call; the group that came last wins. */
function find(keys: string): Shortcut | undefined {
  const shortcuts = useShortcutGroups.getState().groups.flatMap((group) => group.shortcuts);
  return shortcuts.findLast((shortcut) => shortcut.keys === keys && shortcut.run);
}

function handleKey(event: KeyboardEvent): void {
  if (event.defaultPrevented || event.altKey || event.isComposing) return;
  if (isOverPage(event.target)) return;
  const keys = pressedKeys(event);
  if (isTyping(event.target) && keys !== IN_FIELDS) return;
  if (isSingle(keys) && !usePreferences.getState().singleKeys) return;
  const sequence = prefix && Date.now() - prefixAt < PREFIX_MS ? `${prefix} ${keys}` : keys;
  const shortcut = find(sequence) ?? find(keys);
  prefix = shortcut ? "" : keys;
  prefixAt = Date.now();
  if (!shortcut) return;
  event.preventDefault();
  shortcut.run?.();
}

/** Makes keys work while the component is shown, and lists them in the help. */
export function useShortcuts(name: string, shortcuts: readonly Shortcut[]): void {
  const latest = useRef(shortcuts);
  latest.current = shortcuts;
  const signature = writeJson(shortcuts.map(({ keys, does, run }) => [keys, does, !!run]));
  useEffect(() => {
    const listed: [string, string, boolean][] = readJson(signature);
    const entries = listed.map(([keys, does, isCalled], index) => ({
      keys,
      does,
      ...(isCalled && { run: () => latest.current[index]?.run?.() }),
    }));
    const group = { name, shortcuts: entries };
    useShortcutGroups.setState(({ groups }) => ({ groups: [...groups, group] }));
    return () =>
      useShortcutGroups.setState(({ groups }) => ({
        groups: groups.filter((other) => other !== group),
      }));
  }, [name, signature]);
}

/** The groups as the help lists them: each name once, those of the page before those of every page. */
export function listedGroups(groups: readonly ShortcutGroup[]): ShortcutGroup[] {
  const byName = new Map<string, Shortcut[]>();
  for (const { name, shortcuts } of groups) {
    byName.set(name, [...(byName.get(name) ?? []), ...shortcuts]);
  }
  const listed = [...byName].map(([name, shortcuts]) => ({ name, shortcuts }));
  return listed.sort((a, b) => Number(a.name === EVERYWHERE) - Number(b.name === EVERYWHERE));
}

/** Listens to the keyboard; returns a function that stops listening. Once a page. */
export function listenToKeys(): () => void {
  window.addEventListener("keydown", handleKey);
  return () => window.removeEventListener("keydown", handleKey);
}

const SHOWN: Record<string, string> = {
  mod: "Ctrl",
  shift: "Shift",
  enter: "↵",
  escape: "Esc",
  delete: "Del",
  backspace: "Backspace",
  arrowleft: "←",
  arrowright: "→",
  arrowup: "↑",
  arrowdown: "↓",
};

/** The keys of a shortcut as they are printed: [["Ctrl", "↵"]], [["G"], ["N"]]. */
export function printedKeys(keys: string): string[][] {
  return keys
    .split(" ")
    .map((chord) => chord.split(/(?<=.)\+/).map((key) => SHOWN[key] ?? key.toUpperCase()));
}
