import { lazy, Suspense } from "react";
import type { ImportTarget } from "./useImport";

const ImportDialog = lazy(() =>
  import("./ImportDialog").then((module) => ({ default: module.ImportDialog })),
);

/** The dialog that imports a file; its code is loaded when it is opened. */
export function LazyImportDialog(target: ImportTarget) {
  return (
    <Suspense>
      <ImportDialog {...target} />
    </Suspense>
  );
}
