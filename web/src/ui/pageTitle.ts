import { useEffect } from "react";

const shown = { title: "", waiting: 0 };

function write(changed: Partial<typeof shown>): void {
  Object.assign(shown, changed);
  const count = shown.waiting > 0 ? `(${shown.waiting}) ` : "";
  document.title = `${count}${shown.title ? `${shown.title} · planwave` : "planwave"}`;
}

/** Sets the title of the browser's tab: "Runs · planwave". */
export function usePageTitle(title: string): void {
  useEffect(() => write({ title }), [title]);
}

/** Puts before the title how many questions wait for a person: "(2) Runs · planwave". */
export function useTitleCount(waiting: number): void {
  useEffect(() => write({ waiting }), [waiting]);
}
