import { expect, test } from "vitest";
import { taskText } from "./taskText";

test.each([
  ["Find food in {{ city }}.", "Find food in {{ city }}."],
  ["Use {% raw %}{{ braces }}{% endraw %} here.", "Use {{ braces }} here."],
  ["{%- raw -%}{# a #}{%- endraw -%}", "{# a #}"],
  ['Write {{ "{{" }} twice: {{ "{%" }}', "Write {{ twice: {%"],
  // As a text is escaped that has the end of a literal itself.
  ["{% raw %}{% {% endraw %}endraw{% raw %} %}{% endraw %}", "{% endraw %}"],
  ["{% raw %} without an end {{ a }}", "{% raw %} without an end {{ a }}"],
])("%s is read as %s", (stored, read) => expect(taskText(stored)).toBe(read));
