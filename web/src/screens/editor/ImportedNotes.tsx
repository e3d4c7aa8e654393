import type { ImportReport } from "@/api/types";
import { entriesAt, nounOf } from "@/screens/import/importReport";
import { Note } from "@/ui/Note";
import styles from "./ImportedNotes.module.css";

/** What a step was in the file that it was imported from, and what is said of that. */
export function ImportedNotes({ report, id }: { report: ImportReport; id: string }) {
  const entries = entriesAt(report, id);
  if (entries.length === 0) return null;
  return (
    <Note>
      <section className={styles.imported} aria-label="Import">
        {entries.map(({ pointer, name, kind, notes }) => (
          <div key={pointer}>
            <p>
              Imported: <b>{name}</b>
              {kind && kind !== name && `, ${kind}`} of {nounOf(report.kind)}
            </p>
            {notes.length > 0 && (
              <ul>
                {notes.map((note) => (
                  <li key={`${note.pointer} ${note.message}`}>
                    {note.message}
                    {note.hint && ` (${note.hint})`}{" "}
                    {note.pointer && note.pointer !== pointer && <code>{note.pointer}</code>}
                  </li>
                ))}
              </ul>
            )}
          </div>
        ))}
      </section>
    </Note>
  );
}
