import { lazy, Suspense } from "react";
import styles from "@/ui/Markdown.module.css";

const MarkdownBody = lazy(() =>
  import("@/ui/MarkdownBody").then((module) => ({ default: module.MarkdownBody })),
);

/** Markdown of a model or a person: no HTML, no images from elsewhere. Plain text until it is loaded. */
export function Markdown({ text }: { text: string }) {
  return (
    <div className={styles.markdown}>
      <Suspense fallback={<p className={styles.plain}>{text}</p>}>
        <MarkdownBody text={text} />
      </Suspense>
    </div>
  );
}
