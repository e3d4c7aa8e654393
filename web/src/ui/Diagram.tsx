import { useEffect, useState } from "react";
import { drawDiagram } from "@/diagram/drawDiagram";
import { CodeBlock } from "@/ui/CodeBlock";
import styles from "@/ui/Markdown.module.css";
import { useDarkTheme } from "@/ui/useMedia";

/** A diagram of Mermaid as a picture, which runs nothing and loads nothing; what cannot be drawn is shown as code. */
export function Diagram({ code }: { code: string }) {
  const isDark = useDarkTheme();
  const [picture, setPicture] = useState<string | null>(null);
  useEffect(() => {
    let isOpen = true;
    void drawDiagram(code, isDark).then((svg) => isOpen && setPicture(svg));
    return () => {
      isOpen = false;
    };
  }, [code, isDark]);
  const source = (
    <CodeBlock code={code}>
      <code>{code}</code>
    </CodeBlock>
  );
  if (picture === null) return source;
  return (
    <figure className={styles.diagram}>
      <img src={`data:image/svg+xml,${encodeURIComponent(picture)}`} alt="Diagram" />
      <details>
        <summary>Source of the diagram</summary>
        {source}
      </details>
    </figure>
  );
}
