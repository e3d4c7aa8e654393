import { type ReactNode, useDeferredValue, useState } from "react";
import { useStore } from "zustand";
import { useCheck } from "@/api/checks";
import type { CheckResponse } from "@/api/types";
import { makesDraft } from "@/screens/import/importReport";
import { Button } from "@/ui/Button";
import { formatAmount } from "@/ui/format";
import { Note } from "@/ui/Note";
import { usePageTitle } from "@/ui/pageTitle";
import { Segmented } from "@/ui/Segmented";
import { useDebounced } from "@/ui/useDebounced";
import { useBreakpoint } from "@/ui/useMedia";
import { EditorBody, type EditorBodyProps, type EditorView } from "./EditorBody";
import styles from "./EditorScreen.module.css";
import type { EditorStore } from "./editorStore";
import header from "./GraphEditor.module.css";
import { Problems } from "./Problems";

/** How long after the last key the graph is checked, in ms. */
const CHECK_DELAY_MS = 250;

const VIEWS: readonly { value: EditorView; label: string }[] = [
  { value: "canvas", label: "Canvas" },
  { value: "table", label: "Table" },
  { value: "json", label: "JSON" },
];

type GraphEditorProps = Omit<EditorBodyProps, "view" | "check"> & {
  check: CheckResponse | undefined;
  /** What stands at the left of the header: the title, and what it belongs to. */
  title: ReactNode;
  /** The buttons at its right. */
  actions: ReactNode;
  /** Bars and notes between the header and the graph. */
  children?: ReactNode;
};

/** The editor of a graph, whatever it is stored as: views, form, problems and what they would take. */
export function GraphEditor({ title, actions, children, ...body }: GraphEditorProps) {
  const { store, check } = body;
  const { content, lost } = useStore(store);
  const isPhone = useBreakpoint("phone");
  const [view, setView] = useState<EditorView>(isPhone ? "table" : "canvas");
  usePageTitle(content.title || "Plan");
  return (
    <div className={styles.screen}>
      <header className={header.header}>
        {title}
        <div className={header.actions}>
          <Segmented label="Show the plan as" value={view} options={VIEWS} onChange={setView} />
          {actions}
        </div>
      </header>
      {children}
      {lost.length > 0 && <Lost lost={lost} onClose={store.forgetLost} />}
      <EditorBody {...body} view={view} />
      <Problems
        graph={useDeferredValue(content.graph)}
        check={check}
        onSelect={store.select}
        onCorrect={store.correct}
      />
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

/** What the check finds in the goal, and in the graph as it is now, a moment after the last key; `errors` says how many
 * there are, if any: "2 errors"; a draft has some wherever it is run. */
export function useGraphCheck(store: EditorStore, goal: string) {
  const graph = useStore(store, ({ content }) => content.graph);
  const check = useCheck(useDebounced(graph, CHECK_DELAY_MS), goal).data;
  const errors = check?.diagnostics.filter((each) => each.severity === "error").length ?? 0;
  const isDraft = check?.diagnostics.some(makesDraft) ?? false;
  return { check, isDraft, errors: errors > 0 ? formatAmount(errors, "error") : undefined };
}
