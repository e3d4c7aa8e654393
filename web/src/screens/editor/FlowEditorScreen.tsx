import { useEffect, useState } from "react";
import { Link, useBlocker, useParams } from "react-router";
import { useStore } from "zustand";
import { call } from "@/api/http";
import { useEditFlow, useUpdateFlow } from "@/api/mutations";
import { useFlow } from "@/api/queries";
import { showError } from "@/api/showError";
import type { FlowResponse } from "@/api/types";
import { ErrorNote } from "@/screens/ErrorNote";
import { Button } from "@/ui/Button";
import { Dialog } from "@/ui/Dialog";
import { Note } from "@/ui/Note";
import { showToast } from "@/ui/Toast";
import { createEditorStore, type EditorStore, type SavedPlan } from "./editorStore";
import { GraphEditor, useGraphCheck } from "./GraphEditor";
import styles from "./GraphEditor.module.css";
import { Opening } from "./Opening";
import { guardUnsaved, isConflict } from "./saving";

const BACK = { to: "/flows", words: "All flows" };

/** The editor of a flow's graph. It starts from the flow as it was opened. */
export function FlowEditorScreen() {
  const { flowId = "" } = useParams();
  const flow = useFlow(flowId);
  if (flow.data) return <FlowEditor key={flowId} flow={flow.data} />;
  return <Opening what="Flow" error={flow.error} back={BACK} />;
}

function savedFlow({ name, graph, version, revision }: FlowResponse): SavedPlan {
  return { title: name, graph, hash: version, revision };
}

/** A flow's graph, to be changed; it is saved when it is told to, and only without errors. */
function FlowEditor({ flow }: { flow: FlowResponse }) {
  const [store] = useState(() => createEditorStore(savedFlow(flow)));
  const { content, saved } = useStore(store);
  const [base] = useState(flow.graph);
  const { save, isSaving, error, rename } = useSave(flow.flow_id, store);
  const { check, errors } = useGraphCheck(store);
  const hasChanges = store.unsaved().length > 0;
  useEffect(() => guardUnsaved(store), [store]);
  return (
    <>
      <GraphEditor
        store={store}
        check={check}
        comparison={base}
        onEnter={{ does: "Save the flow", run: save }}
        onRename={rename}
        title={
          <div className={styles.title}>
            <h1>{content.title}</h1>
            <Link to={`/flows/${flow.flow_id}`}>revision {saved.revision}</Link>
          </div>
        }
        actions={
          <Button
            kind="primary"
            onClick={save}
            disabledReason={whyNotSaved(hasChanges, errors, isSaving)}
          >
            Save
          </Button>
        }
      >
        {error && <ErrorNote error={error} />}
      </GraphEditor>
      <LeaveDialog store={store} />
    </>
  );
}

function whyNotSaved(
  hasChanges: boolean,
  errors: string | undefined,
  isSaving: boolean,
): string | undefined {
  if (isSaving) return "Saving …";
  if (!hasChanges) return "All changes are saved";
  return errors && `${errors} left`;
}

/** Saves over the version that was looked at; a change of somebody else is merged in first. */
function useSave(flowId: string, store: EditorStore) {
  const update = useUpdateFlow(flowId);
  const edit = useEditFlow(flowId);
  const mergeTheirs = async () => {
    store.rebase(savedFlow(await call("getFlow", { path: { flow_id: flowId } })));
    showToast({
      text: "Somebody else has changed this flow. Their changes are here now, with yours on top: look at them, and save again.",
    });
  };
  const save = () => {
    const { content, saved } = store.getState();
    if (store.unsaved().length === 0) return;
    update.mutate(
      { version: saved.hash, body: { graph: content.graph } },
      {
        onSuccess: (flow) => store.accept(savedFlow(flow), content),
        onError: (error) => {
          if (isConflict(error)) mergeTheirs().catch(showError);
        },
      },
    );
  };
  /** The service changes the id wherever it is named, so everything is saved with it. */
  const rename = async (id: string, to: string) => {
    const { content, saved } = store.getState();
    const body = { operations: [...store.unsaved(), { op: "rename", id, to } as const] };
    try {
      const renamed = await edit.mutateAsync({ version: saved.hash, body });
      store.accept({ ...saved, ...content }, content);
      store.replace(savedFlow(renamed));
      store.select([to]);
      showToast({ text: `Saved as revision ${renamed.revision}, with the new id.` });
    } catch (fault) {
      if (isConflict(fault)) await mergeTheirs().catch(showError);
      else showError(fault);
    }
  };
  const error = update.error && !isConflict(update.error) ? update.error : null;
  return { save, isSaving: update.isPending || edit.isPending, error, rename };
}

function LeaveDialog({ store }: { store: EditorStore }) {
  const blocker = useBlocker(() => store.unsaved().length > 0);
  if (blocker.state !== "blocked") return null;
  return (
    <Dialog
      open
      onClose={blocker.reset}
      title="Leave without saving?"
      footer={
        <>
          <Button kind="danger" onClick={blocker.proceed}>
            Leave
          </Button>
          <Button kind="primary" onClick={blocker.reset}>
            Stay
          </Button>
        </>
      }
    >
      <Note kind="warning">The changes of this flow are not saved yet.</Note>
    </Dialog>
  );
}
