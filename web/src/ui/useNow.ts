import { useSyncExternalStore } from "react";

/** The interval at which running times are updated, in ms. */
const INTERVAL = 1000;

const listeners = new Set<() => void>();
let now = Date.now();
let timer: ReturnType<typeof setInterval> | undefined;

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  now = Date.now();
  timer ??= setInterval(() => {
    now = Date.now();
    for (const each of listeners) each();
  }, INTERVAL);
  return () => {
    listeners.delete(listener);
    if (listeners.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  };
}

const never = () => () => {};

/** The time in ms since 1970, updated every second while `isRunning` is true. */
export function useNow(isRunning = true): number {
  return useSyncExternalStore(isRunning ? subscribe : never, () => now);
}
