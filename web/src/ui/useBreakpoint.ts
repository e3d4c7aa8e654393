import { useCallback, useSyncExternalStore } from "react";
import { BREAKPOINTS, type Breakpoint } from "./breakpoints";

/** Whether the screen is as narrow as a breakpoint says, now and from then on. */
export function useBreakpoint(name: Breakpoint): boolean {
  const query = BREAKPOINTS[name];
  const subscribe = useCallback(
    (listener: () => void) => {
      const list = window.matchMedia(query);
      list.addEventListener("change", listener);
      return () => list.removeEventListener("change", listener);
    },
    [query],
  );
  return useSyncExternalStore(subscribe, () => window.matchMedia(query).matches);
}
