import { Button } from "@/ui/Button";
import { Dialog } from "@/ui/Dialog";
import { ImportedActions } from "./ImportedActions";
import { ImportedReport } from "./ImportedReport";
import { ImportForm } from "./ImportForm";
import { sourceWords } from "./importReport";
import { type ImportTarget, useImport } from "./useImport";

const WANTED =
  "A graph of planwave, or a workflow of another program: JSON, YAML or a Mermaid flowchart.";

/** Imports a file or a pasted text: planwave's own at once, others after a look at what became of them. */
export function ImportDialog(target: ImportTarget) {
  const task = useImport(target);
  const { imported, source } = task;
  const isEmpty = source.text.trim() === "";
  return (
    <Dialog
      open
      wide
      onClose={target.onClose}
      title="Import a file"
      description={imported ? sourceWords(imported.answer.report) : WANTED}
      footer={
        imported ? (
          <ImportedActions imported={imported} task={task} />
        ) : (
          <Button
            kind="primary"
            onClick={() => void task.readText()}
            aria-busy={task.isBusy}
            disabledReason={isEmpty ? "Choose a file, or paste a text" : undefined}
          >
            Import
          </Button>
        )
      }
    >
      {imported ? <ImportedReport imported={imported} task={task} /> : <ImportForm task={task} />}
    </Dialog>
  );
}
