import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';

/** The project's folder; compiled tests lie in dist/test/contract. */
export const ROOT = fileURLToPath(new URL('../../../', import.meta.url));

/** Paths of the files below a folder that end in `end`, from the project's folder, with slashes. */
export function filesBelow(folder: string, end: string): string[] {
  const found = readdirSync(join(ROOT, folder), { recursive: true, withFileTypes: true });
  return found.filter((entry) => entry.isFile() && entry.name.endsWith(end)).map((entry) => relative(ROOT, join(entry.parentPath, entry.name)));
}

export const textOf = (file: string): string => readFileSync(join(ROOT, file), 'utf8');

/**
 * What a source file loads at run time: files from the project's folder, packages by name.
 * Imports of types alone are gone when it runs and do not count.
 */
export function importsOf(file: string, text: string): string[] {
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest);
  const found: string[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isImportDeclaration(node) && node.importClause?.phaseModifier !== ts.SyntaxKind.TypeKeyword) add(node.moduleSpecifier);
    else if (ts.isExportDeclaration(node) && !node.isTypeOnly) add(node.moduleSpecifier);
    else if (ts.isCallExpression(node) && (node.expression.kind === ts.SyntaxKind.ImportKeyword || /\brequire\b|createRequire/.test(node.expression.getText(source)))) add(node.arguments[0]);
    ts.forEachChild(node, visit);
  };
  const add = (specifier: ts.Node | undefined): void => {
    if (specifier && ts.isStringLiteral(specifier)) found.push(resolved(file, specifier.text));
  };
  visit(source);
  return found.filter((target) => !target.startsWith('node:'));
}

function resolved(file: string, specifier: string): string {
  if (specifier.startsWith('.')) return join(dirname(file), specifier).replace(/\.js$/, '.ts');
  return /^(@[^/]+\/)?[^/]+/.exec(specifier)![0];
}
