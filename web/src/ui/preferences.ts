import { create } from "zustand";
import { persist } from "zustand/middleware";

export type Theme = "system" | "light" | "dark";

interface Preferences {
  theme: Theme;
  /** Whether single letters, digits and signs do something while no field has the focus. */
  singleKeys: boolean;
  /** Whether the browser tells when a run ends or asks, while the page is not seen. */
  notices: boolean;
  setTheme: (theme: Theme) => void;
  setSingleKeys: (singleKeys: boolean) => void;
  setNotices: (notices: boolean) => void;
}

/** What this browser keeps of the reader's choices. */
export const usePreferences = create<Preferences>()(
  persist(
    (set) => ({
      theme: "system",
      singleKeys: true,
      notices: false,
      setTheme: (theme) => set({ theme }),
      setSingleKeys: (singleKeys) => set({ singleKeys }),
      setNotices: (notices) => set({ notices }),
    }),
    { name: "planwave.preferences" },
  ),
);

function applyTheme(theme: Theme): void {
  const root = document.documentElement;
  if (theme === "system") root.removeAttribute("data-theme");
  else root.setAttribute("data-theme", theme);
}

/** Applies the theme now and whenever it changes; returns a function that stops this. */
export function followTheme(): () => void {
  applyTheme(usePreferences.getState().theme);
  return usePreferences.subscribe(({ theme }) => applyTheme(theme));
}
