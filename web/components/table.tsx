import type { ComponentChildren, VNode } from 'preact';

export interface Column<Row> {
  readonly title: string;
  readonly cell: (row: Row) => ComponentChildren;
  /** `tight`: no wider than it needs. `main`: takes the room that is left. */
  readonly kind?: 'right' | 'tight' | 'main';
}

interface TableProps<Row> {
  readonly caption: string;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  readonly rowKey: (row: Row) => string;
}

const classes = { right: 'right tight', tight: 'tight', main: 'main-cell', text: 'text-cell' } as const;

/** On a narrow screen each row becomes a list of its cells, each with the title of its column. */
export function Table<Row>({ caption, columns, rows, rowKey }: TableProps<Row>): VNode {
  return (
    <div class="table-box">
      <table>
        <caption class="visually-hidden">{caption}</caption>
        <thead>
          <tr>
            {columns.map(({ title, kind }) => (
              <th key={title} scope="col" class={kind === 'right' ? 'right' : ''}>
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={rowKey(row)}>
              {columns.map(({ title, cell, kind }) => (
                <td key={title} class={classes[kind ?? 'text']} data-label={title}>
                  <div>{cell(row)}</div>
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
