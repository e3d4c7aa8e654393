import { useEffect, useState } from "react";
import { Link, useBlocker, useParams } from "react-router";
import { useStore } from "zustand";
import { errorText } from "@/api/errorText";
import { ApiError, call } from "@/api/http";
import { useEditFlow, useUpdateFlow } from "@/api/mutations";
import { useCheck, useFlow } from "@/api/queries";
import type { FlowResponse } from "@/api/types";
import { ErrorNote } from "@/screens/ErrorNote";
import { Button } from "@/ui/Button";
import { Dialog } from "@/ui/Dialog";
import { formatAmount } from "@/ui/format";
import { Note } from "@/ui/Note";
import { usePageTitle } from "@/ui/pageTitle";
import { Segmented } from "@/ui/Segmented";
import { Skeleton } from "@/ui/Skeleton";
import { showToast } from "@/ui/Toast";
import { useBreakpoint } from "@/ui/useBreakpoint";
import { EditorBody } from "./EditorBody";
import { EDITOR_VIEWS, type EditorView } from "./EditorHeader";
import headerStyles from "./EditorHeader.module.css";
import styles from "./EditorScreen.module.css";
import { createEditorStore, type EditorStore, type SavedPlan } from "./editorStore";
import { forecastWords } from "./forecastWords";
import { Problems } from "./Problems";

/** The editor of a flow's graph. It starts from the flow as it was opened. */
export function FlowEditorScreen() {
  const { flowId = "" } = useParams();
  const flow = useFlow(flowId);
  if (flow.data) return <FlowEditor key={flowId} flow={flow.data} />;
  return (
    <div className={styles.message}>
      {flow.error ? (
        <ErrorNote error={flow.error} />
      ) : (
        <Skeleton label="Loading the flow" lines={6} />
      )}
    </div>
  );
}

function savedFlow({ name, graph, version, revision }: FlowResponse): SavedPlan {
  return { title: name, graph, hash: version, revision };
}

/** A flow's graph, to be changed; it is saved when it is told to, and only without errors. */
function FlowEditor({ flow }: { flow: FlowResponse }) {
  const [store] = useState(() => createEditorStore(savedFlow(flow)));
  const { content, saved } = useStore(store);
  const isPhone = useBreakpoint("phone");
  const [view, setView] = useState<EditorView>(isPhone ? "table" : "canvas");
  const [base] = useState(flow.graph);
  const { save, isSaving, error, rename } = useSave(flow.flow_id, store);
  const check = useCheck(content.graph);
  const diagnostics = check.data?.diagnostics ?? [];
  const errors = diagnostics.filter((each) => each.severity === "error").length;
  const hasChanges = store.unsaved().length > 0;
  usePageTitle(content.title);
  useEffect(() => warnBeforeLeaving(store), [store]);
  return (
    <div className={styles.screen}>
      <header className={headerStyles.header}>
        <div className={headerStyles.title}>
          <h1>{content.title}</h1>
          <Link to={`/flows/${flow.flow_id}`}>revision {saved.revision}</Link>
        </div>
        <div className={headerStyles.actions}>
          <Segmented label="View" value={view} options={EDITOR_VIEWS} onChange={setView} />
          <Button
            kind="primary"
            onClick={save}
            disabledReason={whyNotSaved(hasChanges, errors, isSaving)}
          >
            Save
          </Button>
        </div>
      </header>
      {error && <ErrorNote error={error} />}
      <EditorBody
        store={store}
        view={view}
        onEnter={{ does: "Save the flow", run: save }}
        onRename={rename}
        check={check.data}
        comparison={base}
      />
      <Problems
        graph={content.graph}
        diagnostics={diagnostics}
        forecast={forecastWords(check.data?.forecast)}
        onSelect={store.select}
        onCorrect={store.correct}
      />
      <LeaveDialog store={store} />
    </div>
  );
}

function whyNotSaved(hasChanges: boolean, errors: number, isSaving: boolean): string | undefined {
  if (isSaving) return "Saving …";
  if (!hasChanges) return "All changes are saved";
  return errors > 0 ? `${formatAmount(errors, "error")} left` : undefined;
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
          if (isConflict(error)) mergeTheirs().catch(fail);
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
      if (isConflict(fault)) await mergeTheirs().catch(fail);
      else fail(fault);
    }
  };
  const error = update.error && !isConflict(update.error) ? update.error : null;
  return { save, isSaving: update.isPending || edit.isPending, error, rename };
}

function fail(error: unknown): void {
  showToast({ kind: "error", text: errorText(error) });
}

function isConflict(error: unknown): boolean {
  return error instanceof ApiError && error.status === 412;
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

/** The browser asks before it closes a page with changes that are not saved. */
function warnBeforeLeaving(store: EditorStore): () => void {
  const warn = (event: BeforeUnloadEvent) => {
    if (store.unsaved().length > 0) event.preventDefault();
  };
  window.addEventListener("beforeunload", warn);
  return () => window.removeEventListener("beforeunload", warn);
}
