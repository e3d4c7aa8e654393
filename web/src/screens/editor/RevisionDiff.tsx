import type { ElementDifference, GraphDocument, RevisionDiffResponse } from "@/api/types";
import { writeJson } from "@/json";
import { IconButton } from "@/ui/IconButton";
import { useShortcuts } from "@/ui/shortcuts";
import { Tag } from "@/ui/Tag";
import styles from "./RevisionDiff.module.css";

type RevisionDiffProps = {
  diff: RevisionDiffResponse;
  /** The plan, for the names of its steps. */
  graph: GraphDocument;
  onClose: () => void;
};

/** What differs between two revisions, field by field. */
export function RevisionDiff({ diff, graph, onClose }: RevisionDiffProps) {
  useShortcuts("The comparison", [{ keys: "escape", does: "Close it", run: onClose }]);
  const names = new Map(graph.nodes.map(({ id, name }) => [id, name || id]));
  // The plan has no name of a step that was removed.
  for (const { id, before } of diff.nodes) {
    if (id && typeof before?.name === "string" && !names.has(id)) names.set(id, before.name);
  }
  const nameOf = (id: string) => names.get(id) ?? id;
  const isSame = diff.nodes.length + diff.edges.length === 0 && diff.title === null;
  return (
    <section className={styles.panel} aria-label={`Revision ${diff.a} to ${diff.b}`}>
      <header>
        <h2>
          Revision {diff.a} to {diff.b}
        </h2>
        <IconButton icon="close" label="Close the comparison" keys="Esc" small onClick={onClose} />
      </header>
      {isSame && <p>They are the same.</p>}
      {diff.title && (
        <p>
          Title: <del>{diff.title[0]}</del> <ins>{diff.title[1]}</ins>
        </p>
      )}
      <ul>
        {diff.nodes.map((each) => (
          <Element key={each.id} element={each} name={stepName(each, nameOf)} />
        ))}
        {diff.edges.map((each, index) => (
          <Element key={each.id ?? index} element={each} name={edgeName(each, graph, nameOf)} />
        ))}
      </ul>
    </section>
  );
}

const SIGNS = {
  added: { kind: "add", sign: "+" },
  removed: { kind: "remove", sign: "−" },
  changed: { kind: "change", sign: "~" },
} as const;

type NameOf = (id: string) => string;

function stepName({ id, after, before }: ElementDifference, nameOf: NameOf): string {
  const name = (after ?? before)?.name;
  return typeof name === "string" && name ? name : nameOf(id ?? "");
}

/** Returns "Facts → Draft": people know an edge by its ends. */
function edgeName(edge: ElementDifference, { edges }: GraphDocument, nameOf: NameOf): string {
  const present = edges.find((each) => each.id === edge.id);
  const { source, target } = edge.after ?? edge.before ?? present ?? {};
  if (typeof source !== "string" || typeof target !== "string") return edge.id ?? "an edge";
  return `${nameOf(source)} → ${nameOf(target)}`;
}

function Element({ element, name }: { element: ElementDifference; name: string }) {
  const { kind, sign } = SIGNS[element.change];
  return (
    <li>
      <Tag kind={kind}>{sign}</Tag>
      <span className="visually-hidden">{element.change}: </span>
      <b>{name}</b>
      <ul>
        {(element.fields ?? []).map((field) => (
          <li key={field.pointer}>
            <code>
              {field.pointer.slice(1).replaceAll("/", ".")} <del>{shorten(field.before)}</del>{" "}
              <ins>{shorten(field.after)}</ins>
            </code>
          </li>
        ))}
      </ul>
    </li>
  );
}

/** Characters of a value that are shown. */
const LONGEST = 200;

function shorten(value: unknown): string {
  if (value === undefined || value === null) return "";
  const text = typeof value === "string" ? value : writeJson(value);
  return text.length > LONGEST ? `${text.slice(0, LONGEST)} …` : text;
}
