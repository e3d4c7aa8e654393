import { useCallback, useSyncExternalStore } from "react";

/** Screens up to this width are phones, as in the style sheets. */
export const PHONE = "(max-width: 720px)";

/** Whether a media query holds, now and from then on. */
export function useMediaQuery(query: string): boolean {
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
