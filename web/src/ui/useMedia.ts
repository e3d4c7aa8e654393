import { useCallback, useSyncExternalStore } from "react";
import { BREAKPOINTS, type Breakpoint } from "@/ui/breakpoints";
import { usePreferences } from "@/ui/preferences";

/** Whether the screen is as narrow as a breakpoint says, now and from then on. */
export function useBreakpoint(name: Breakpoint): boolean {
  return useMedia(BREAKPOINTS[name]);
}

/** Whether the page is dark, by the reader's choice or by the system. */
export function useDarkTheme(): boolean {
  const theme = usePreferences((preferences) => preferences.theme);
  const isSystemDark = useMedia("(prefers-color-scheme: dark)");
  return theme === "system" ? isSystemDark : theme === "dark";
}

function useMedia(query: string): boolean {
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
