import { useMemo, useState } from "react";
import { useStore } from "zustand";
import { errorText } from "@/api/errorText";
import { useEditPlan, useRestoreRevision } from "@/api/mutations";
import { useCheck } from "@/api/queries";
import type { GraphDocument, PlanResponse } from "@/api/types";
import { readJson, writeJson } from "@/json";
import { Button } from "@/ui/Button";
import { formatAmount } from "@/ui/format";
import { Note } from "@/ui/Note";
import { usePageTitle } from "@/ui/pageTitle";
import { showToast } from "@/ui/Toast";
import { useBreakpoint } from "@/ui/useBreakpoint";
import { useDebounced } from "@/ui/useDebounced";
import { EditorBody } from "./EditorBody";
import { EditorHeader, type EditorView } from "./EditorHeader";
import styles from "./EditorScreen.module.css";
import { createEditorStore, type EditorStore } from "./editorStore";
import { forecastWords } from "./forecastWords";
import { Problems } from "./Problems";
import { choosePlanFile, downloadPlan } from "./planFile";
import { RevisionBar } from "./RevisionBar";
import { SaveAsFlow } from "./SaveAsFlow";
import { type Autosave, savedPlan, useAutosave } from "./useAutosave";
import { useComparison } from "./useComparison";
import { useRunPlan } from "./useRunPlan";
import { WaitingRun } from "./WaitingRun";

/** How long after the last key the plan is checked, in ms. */
const CHECK_DELAY_MS = 250;

/** A plan, to be changed: every change is saved a moment later, as a new revision. */
export function PlanEditor({ plan }: { plan: PlanResponse }) {
  const [store] = useState(() => createEditorStore(savedPlan(plan)));
  const { content, saved, lost } = useStore(store);
  const isPhone = useBreakpoint("phone");
  const [view, setView] = useState<EditorView>(isPhone ? "table" : "canvas");
  const [isSavingFlow, setSavingFlow] = useState(false);
  const autosave = useAutosave(plan, store);
  const check = useCheck(useDebounced(useGraphToCheck(content.graph), CHECK_DELAY_MS));
  const diagnostics = check.data?.diagnostics ?? [];
  const errors = diagnostics.filter((each) => each.severity === "error").length;
  const blocked = errors > 0 ? `Fix ${formatAmount(errors, "error")} to run` : undefined;
  const run = useRunPlan(plan.plan_id, autosave.flush, blocked);
  const comparison = useComparison(plan.plan_id, saved.revision);
  const changes = useWholeChanges(plan.plan_id, store, autosave);
  usePageTitle(content.title || "Plan");
  return (
    <div className={styles.screen}>
      <EditorHeader
        title={content.title}
        onTitle={store.changeTitle}
        view={view}
        onView={setView}
        blocked={blocked}
        run={run}
        onSaveAsFlow={() => setSavingFlow(true)}
        onExport={() => downloadPlan(store.getState().content)}
        onImport={() => void importPlan(store)}
      />
      <RevisionBar
        planId={plan.plan_id}
        revision={saved.revision}
        save={autosave.state}
        comparison={comparison}
        onRestore={changes.restore}
      />
      <WaitingRun
        planId={plan.plan_id}
        store={store}
        saved={saved}
        blocked={blocked}
        flush={autosave.flush}
      />
      {lost.length > 0 && <Lost lost={lost} onClose={store.forgetLost} />}
      <EditorBody
        store={store}
        view={view}
        onEnter={{ does: "Run the plan", run: run.start }}
        onRename={changes.rename}
        check={check.data}
        comparison={comparison}
      />
      <Problems
        graph={content.graph}
        diagnostics={diagnostics}
        forecast={forecastWords(check.data?.forecast)}
        onSelect={store.select}
        onCorrect={store.correct}
      />
      {isSavingFlow && (
        <SaveAsFlow
          graph={content.graph}
          title={content.title}
          onClose={() => setSavingFlow(false)}
        />
      )}
    </div>
  );
}

function Lost({ lost, onClose }: { lost: readonly string[]; onClose: () => void }) {
  return (
    <Note kind="warning" alert>
      Somebody else has changed this plan at the same time. Both changes are here, but for{" "}
      {lost.join(", ")}: they have removed that.{" "}
      <Button small onClick={onClose}>
        Understood
      </Button>
    </Note>
  );
}

/** Places are not checked: moving a step asks nothing of the service. */
function useGraphToCheck(graph: GraphDocument): GraphDocument {
  const text = writeJson(graph, 0, (key, value) => (key === "ui" ? undefined : value));
  return useMemo(() => readJson(text) as GraphDocument, [text]);
}

/** Changes that the service makes of the whole plan: a new id of a step, an earlier revision. */
function useWholeChanges(planId: string, store: EditorStore, { changeBy }: Autosave) {
  const edit = useEditPlan(planId);
  const restoring = useRestoreRevision(planId);
  const fail = (error: unknown) => showToast({ kind: "error", text: errorText(error) });
  const rename = async (id: string, to: string) => {
    const operations = [{ op: "rename", id, to } as const];
    try {
      await changeBy((hash) => edit.mutateAsync({ hash, body: { operations, author: "person" } }));
      store.select([to]);
    } catch (error) {
      fail(error);
    }
  };
  const restore = (revision: number) =>
    void changeBy((hash) => restoring.mutateAsync({ hash, revision })).catch(fail);
  return { rename, restore };
}

async function importPlan(store: EditorStore): Promise<void> {
  const read = await choosePlanFile();
  if (!read) return;
  if ("problem" in read) return showToast({ kind: "error", text: read.problem });
  const { content } = store.getState();
  store.change({ title: read.title ?? content.title, graph: read.graph });
  store.select([]);
}
