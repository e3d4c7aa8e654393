import { useEffect } from "react";

/** Sets the title of the browser's tab: "Runs · planwave". */
export function usePageTitle(title: string): void {
  useEffect(() => {
    document.title = title ? `${title} · planwave` : "planwave";
  }, [title]);
}
